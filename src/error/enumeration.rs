//! Turns the table of codes into an enumeration.

/// Declares the enumeration of codes: those with a name, and bare numbers in two tables.
macro_rules! error_codes {
    (named { $($(#[$doc:meta])* $name:ident = $number:literal,)* }
     numbered { $($(#[$bare_doc:meta])* $bare:ident = $bare_number:literal,)* }
     long { $($(#[$long_doc:meta])* $long:ident = $long_number:literal,)* }) => {
        /// Error codes of the MongoDB server that this engine answers with: those with a name, and bare numbers.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(i32)]
        #[non_exhaustive]
        pub enum ErrorCode {
            $($(#[$doc])* $name = $number,)*
            $($(#[$bare_doc])* $bare = $bare_number,)*
            $($(#[$long_doc])* $long = $long_number,)*
        }

        impl ErrorCode {
            /// The server's `codeName`: the symbolic name, or `Location<code>` for bare numbers.
            pub fn name(self) -> Cow<'static, str> {
                Cow::Borrowed(match self {
                    $(ErrorCode::$name => stringify!($name),)*
                    _ => return Cow::Owned(format!("Location{}", self as i32)),
                })
            }

            /// Every code: named ones and bare numbers, each in ascending order.
            pub fn all() -> [&'static [ErrorCode]; 2] {
                [&[$(ErrorCode::$name,)*], &[$(ErrorCode::$bare,)* $(ErrorCode::$long,)*]]
            }
        }
    };
}

pub(super) use error_codes;
