//! The one error type: a server code, a message, nothing else.
//!
//! The contract with users is the code, so an error is a struct with a code and not an enum of sixty cases.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

/// Shorthand used throughout the crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! error_codes {
    (named { $($(#[$doc:meta])* $name:ident = $number:literal,)* }
     numbered { $($(#[$bare_doc:meta])* $bare:ident = $bare_number:literal,)* }) => {
        /// Error codes of the MongoDB server that this engine answers with: those with a name, and bare numbers.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(i32)]
        #[non_exhaustive]
        pub enum ErrorCode {
            $($(#[$doc])* $name = $number,)*
            $($(#[$bare_doc])* $bare = $bare_number,)*
        }

        impl ErrorCode {
            /// The server's `codeName`: the symbolic name, or `Location<code>` for bare numbers.
            pub fn name(self) -> Cow<'static, str> {
                Cow::Borrowed(match self {
                    $(ErrorCode::$name => stringify!($name),)*
                    _ => return Cow::Owned(format!("Location{}", self as i32)),
                })
            }

            /// Every code, each of the two kinds in ascending order.
            pub fn all() -> [&'static [ErrorCode]; 2] {
                [&[$(ErrorCode::$name,)*], &[$(ErrorCode::$bare,)*]]
            }
        }
    };
}

error_codes! {
    named {
        /// A broken invariant of our own.
        InternalError = 1,
        /// A value that cannot be accepted: a missing time, an unknown operator, a malformed block.
        BadValue = 2,
        /// A command or document that does not parse.
        FailedToParse = 9,
        /// A cursor used under another collection's name.
        Unauthorized = 13,
        /// A stored document or an argument of the wrong BSON type.
        TypeMismatch = 14,
        /// A number or a date beyond its type.
        Overflow = 15,
        /// A list that is empty or too long.
        InvalidLength = 16,
        /// An operation that the target does not allow.
        IllegalOperation = 20,
        /// Bytes that are not BSON.
        InvalidBSON = 22,
        /// No such collection.
        NamespaceNotFound = 26,
        /// An index that does not exist.
        IndexNotFound = 27,
        /// A path that leads through what is no object.
        PathNotViable = 28,
        /// Two operators of an update at one path.
        ConflictingUpdateOperators = 40,
        /// No such cursor.
        CursorNotFound = 43,
        /// The name is taken, or taken with other options.
        NamespaceExists = 48,
        /// A name of a field that begins with `$`.
        DollarPrefixedFieldName = 52,
        /// A bucket whose id does not tell its start.
        InvalidIdField = 53,
        /// A new element too far behind the end of an array.
        CannotBackfillArray = 54,
        /// A path with an empty name.
        EmptyFieldName = 56,
        /// No such command.
        CommandNotFound = 59,
        /// An index that cannot be made.
        CannotCreateIndex = 67,
        /// Options that contradict each other or are not allowed here.
        InvalidOptions = 72,
        /// A malformed collection name.
        InvalidNamespace = 73,
        /// Options of an index that cannot stand together, or an index that exists with others.
        IndexOptionsConflict = 85,
        /// A name that another index has.
        IndexKeySpecsConflict = 86,
        /// A storage operation failed for a reason of its own.
        OperationFailed = 96,
        /// A guard of a storage commit failed: somebody else wrote first. Retried internally.
        WriteConflict = 112,
        /// A malformed bucket document written directly.
        DocumentValidationFailure = 121,
        /// A list of a group takes more memory than it may.
        ExceededMemoryLimit = 146,
        /// A command that a time-series collection does not take.
        CommandNotSupportedOnView = 166,
        /// A find option that a time-series collection cannot express.
        InvalidPipelineOperator = 168,
        /// Two arrays side by side under one index.
        CannotIndexParallelArrays = 171,
        /// A key that several indexes have.
        AmbiguousIndexKeyPattern = 181,
        /// An option that no index has.
        InvalidIndexSpecificationOption = 197,
        /// A value that cannot be converted.
        ConversionFailure = 241,
        /// Stored bytes that break the format.
        DataCorruptionDetected = 246,
        /// A command that is part of a transaction.
        OperationNotSupportedInTransaction = 263,
        /// A stage takes more memory than it may.
        QueryExceededMemoryLimitNoDiskUseAllowed = 292,
        /// A collection that is meant by its UUID.
        CollectionUUIDMismatch = 361,
        /// A bucket of several types at one path written directly.
        CannotInsertTimeseriesBucketsWithMixedSchema = 408,
        /// A document beyond 16 MiB.
        BSONObjectTooLarge = 10334,
        /// A key that must not exist does.
        DuplicateKey = 11000,
        /// The database was closed.
        InterruptedAtShutdown = 11600,
        /// A second getMore while the first one runs.
        CursorInUse = 12051,
        /// The storage has no room left (a browser's quota).
        OutOfDiskSpace = 14031,
        /// A required field of a command is missing.
        IDLFailedToParse = 40414,
        /// A command has a field that it does not know.
        IDLUnknownField = 40415,
    }
    numbered {
        /** More matches of a `$lookup` than a row may have. */ Location4568 = 4568,
        /** A sort of `$top`, or a filter of an index, that is no object. */ Location10065 = 10065,
        /** A place on a plane without two numbers. */ Location13026 = 13026,
        /** A place that lies outside of a 2d index. */ Location13027 = 13027,
        /** A place on a plane of one number. */ Location13068 = 13068,
        /** `$group` of what is no object. */ Location15947 = 15947,
        /** `$group` with two ids. */ Location15948 = 15948,
        /** An unknown accumulator. */ Location15952 = 15952,
        /** `$group` without an id. */ Location15955 = 15955,
        /** A limit that is not positive. */ Location15958 = 15958,
        /** `$match` of what is no object. */ Location15959 = 15959,
        /** `$project` of what is no object. */ Location15969 = 15969,
        /** A `sort` that is not a document. */ Location15973 = 15973,
        /** A sort direction that is neither 1 nor -1. */ Location15975 = 15975,
        /** A sort without keys. */ Location15976 = 15976,
        /** `$unwind` of what is neither a path nor an object. */ Location15981 = 15981,
        /** An expression object with more than one field. */ Location15983 = 15983,
        /** An empty name in a field path of an expression. */ Location15998 = 15998,
        /** A value that is no date. */ Location16006 = 16006,
        /** A value that is no string. */ Location16007 = 16007,
        /** A wrong number of arguments. */ Location16020 = 16020,
        /** `$substrBytes` of what is no length. */ Location16035 = 16035,
        /** A name in a field path that begins with `$`. */ Location16410 = 16410,
        /** A field of an object expression with a dot. */ Location16412 = 16412,
        /** `$mod` by zero. */ Location16610 = 16610,
        /** `$mod` of what is no number. */ Location16611 = 16611,
        /** Two dates in `$add`. */ Location16612 = 16612,
        /** `$concat` of what is no string. */ Location16702 = 16702,
        /** Metadata that is no geometry under a 2dsphere index. */ Location16755 = 16755,
        /** An array under a hashed index. */ Location16766 = 16766,
        /** Two fields with places in a 2d index. */ Location16800 = 16800,
        /** A 2d index whose first field has no places. */ Location16801 = 16801,
        /** A list of places that holds something else. */ Location16804 = 16804,
        /** The path `$`. */ Location16872 = 16872,
        /** `$let` of what is no object. */ Location16874 = 16874,
        /** An unknown argument of `$let`. */ Location16875 = 16875,
        /** `$let` without `vars`. */ Location16876 = 16876,
        /** `$let` without `in`. */ Location16877 = 16877,
        /** `$map` of what is no object. */ Location16878 = 16878,
        /** An unknown argument of `$map`. */ Location16879 = 16879,
        /** `$map` without `input`. */ Location16880 = 16880,
        /** `$map` without `in`. */ Location16882 = 16882,
        /** `$map` over what is no array. */ Location16883 = 16883,
        /** `$allElementsTrue` of what is no array. */ Location17040 = 17040,
        /** `$anyElementTrue` of what is no array. */ Location17041 = 17041,
        /** `$setIsSubset` in what is no array. */ Location17042 = 17042,
        /** `$setUnion` of what is no array. */ Location17043 = 17043,
        /** `$setEquals` of what is no array. */ Location17044 = 17044,
        /** `$setIsSubset` of what is no array. */ Location17046 = 17046,
        /** `$setIntersection` of what is no array. */ Location17047 = 17047,
        /** `$setDifference` of what is no array. */ Location17048 = 17048,
        /** `$setDifference` without what is no array. */ Location17049 = 17049,
        /** `$redact` says something else than it may. */ Location17053 = 17053,
        /** `$cond` without one of its three arguments. */ Location17080 = 17080,
        /** An unknown argument of `$cond`. */ Location17083 = 17083,
        /** `$size` of what is no array. */ Location17124 = 17124,
        /** A `distinct` whose values are more than fit a document. */ Location17217 = 17217,
        /** A variable that does not exist. */ Location17276 = 17276,
        /** `$filter` of what is no object. */ Location28646 = 28646,
        /** An unknown argument of `$filter`. */ Location28647 = 28647,
        /** `$filter` without `input`. */ Location28648 = 28648,
        /** `$filter` without `cond`. */ Location28650 = 28650,
        /** `$filter` over what is no array. */ Location28651 = 28651,
        /** `$substrBytes` from inside a character. */ Location28656 = 28656,
        /** `$substrBytes` to inside a character. */ Location28657 = 28657,
        /** `$concatArrays` of what is no array. */ Location28664 = 28664,
        /** Too few or too many arguments. */ Location28667 = 28667,
        /** `$abs` of the least int64. */ Location28680 = 28680,
        /** A position in what is no array. */ Location28689 = 28689,
        /** A position that is no number. */ Location28690 = 28690,
        /** A position that is no int32. */ Location28691 = 28691,
        /** `$sqrt` below zero. */ Location28714 = 28714,
        /** `$slice` of what is no array. */ Location28724 = 28724,
        /** `$slice` from what is no integer. */ Location28726 = 28726,
        /** `$slice` of what is no count. */ Location28728 = 28728,
        /** `$slice` of a count that is not above 0. */ Location28729 = 28729,
        /** `$sample` of what is no object. */ Location28745 = 28745,
        /** A size of `$sample` that is no number. */ Location28746 = 28746,
        /** A size of `$sample` that is not positive. */ Location28747 = 28747,
        /** An unknown option of `$sample`. */ Location28748 = 28748,
        /** `$sample` without a size. */ Location28749 = 28749,
        /** `$log` of what is no number. */ Location28756 = 28756,
        /** `$log` to what is no number. */ Location28757 = 28757,
        /** `$log` of what is not above 0. */ Location28758 = 28758,
        /** `$log` to a base that is none. */ Location28759 = 28759,
        /** `$log10` of what is not above 0. */ Location28761 = 28761,
        /** `$pow` of what is no number. */ Location28762 = 28762,
        /** `$pow` by what is no number. */ Location28763 = 28763,
        /** `$pow` of 0 by what is below 0. */ Location28764 = 28764,
        /** A function of numbers over what is none. */ Location28765 = 28765,
        /** `$ln` of what is not above 0. */ Location28766 = 28766,
        /** `$indexStats` with options. */ Location28803 = 28803,
        /** A path of `$unwind` that is no string. */ Location28808 = 28808,
        /** An option of `$unwind` that is no boolean. */ Location28809 = 28809,
        /** A name of an index in `$unwind` that is none. */ Location28810 = 28810,
        /** An unknown option of `$unwind`. */ Location28811 = 28811,
        /** `$unwind` without a path. */ Location28812 = 28812,
        /** A path of `$unwind` without `$`. */ Location28818 = 28818,
        /** A name of an index in `$unwind` with `$`. */ Location28822 = 28822,
        /** `$unset` of what names no field. */ Location31002 = 31002,
        /** `$regexMatch` without `input`. */ Location31022 = 31022,
        /** `$regexMatch` without `regex`. */ Location31023 = 31023,
        /** An unknown argument of `$regexMatch`. */ Location31024 = 31024,
        /** `$unset` of a list with something else than names. */ Location31120 = 31120,
        /** Two projection paths collide. */ Location31249 = 31249,
        /** A projection names a path twice, once as a prefix. */ Location31250 = 31250,
        /** An expression inside an exclusion projection. */ Location31252 = 31252,
        /** An inclusion inside an exclusion projection. */ Location31253 = 31253,
        /** An exclusion inside an inclusion projection. */ Location31254 = 31254,
        /** A literal inside an exclusion projection. */ Location31310 = 31310,
        /** `$reverseArray` of what is no array. */ Location34435 = 34435,
        /** `$range` from what is no integer. */ Location34444 = 34444,
        /** `$range` to what is no integer. */ Location34446 = 34446,
        /** `$range` by what is no integer. */ Location34448 = 34448,
        /** `$range` by 0. */ Location34449 = 34449,
        /** `$substrCP` from what is no position. */ Location34450 = 34450,
        /** `$substrCP` of what is no length. */ Location34452 = 34452,
        /** `$zip` of what is no object. */ Location34460 = 34460,
        /** `$zip` of what is no array. */ Location34461 = 34461,
        /** Defaults of `$zip` that are no array. */ Location34462 = 34462,
        /** `useLongestLength` that is no boolean. */ Location34463 = 34463,
        /** An unknown argument of `$zip`. */ Location34464 = 34464,
        /** `$zip` without `inputs`. */ Location34465 = 34465,
        /** Defaults of `$zip` that are not needed. */ Location34466 = 34466,
        /** Another number of defaults of `$zip` than of inputs. */ Location34467 = 34467,
        /** An input of `$zip` that is no array. */ Location34468 = 34468,
        /** `$strLenCP` of what is no string. */ Location34471 = 34471,
        /** `$strLenBytes` of what is no string. */ Location34473 = 34473,
        /** `$switch` of what is no object. */ Location40060 = 40060,
        /** `$switch` whose branches are no array. */ Location40061 = 40061,
        /** A branch of `$switch` that is no object. */ Location40062 = 40062,
        /** An unknown argument of a branch. */ Location40063 = 40063,
        /** A branch without `case`. */ Location40064 = 40064,
        /** A branch without `then`. */ Location40065 = 40065,
        /** `$switch` without a branch that matches. */ Location40066 = 40066,
        /** An unknown argument of `$switch`. */ Location40067 = 40067,
        /** `$switch` without branches. */ Location40068 = 40068,
        /** `$reduce` of what is no object. */ Location40075 = 40075,
        /** An unknown argument of `$reduce`. */ Location40076 = 40076,
        /** `$reduce` without `input`. */ Location40077 = 40077,
        /** `$reduce` without `initialValue`. */ Location40078 = 40078,
        /** `$reduce` without `in`. */ Location40079 = 40079,
        /** `$reduce` over what is no array. */ Location40080 = 40080,
        /** `$in` of what is no array. */ Location40081 = 40081,
        /** `$split` of what is no string. */ Location40085 = 40085,
        /** `$split` by what is no string. */ Location40086 = 40086,
        /** `$split` by an empty string. */ Location40087 = 40087,
        /** `$indexOfArray` in what is no array. */ Location40090 = 40090,
        /** `$indexOfBytes` in what is no string. */ Location40091 = 40091,
        /** `$indexOfBytes` of what is no string. */ Location40092 = 40092,
        /** `$indexOfCP` in what is no string. */ Location40093 = 40093,
        /** `$indexOfCP` of what is no string. */ Location40094 = 40094,
        /** `$indexOfCP` between what are no positions. */ Location40096 = 40096,
        /** `$count` of what is no name. */ Location40156 = 40156,
        /** `$count` of an empty name. */ Location40157 = 40157,
        /** `$count` of a name with `$`. */ Location40158 = 40158,
        /** `$count` of a name with a null byte. */ Location40159 = 40159,
        /** `$count` of a name with a dot. */ Location40160 = 40160,
        /** An unknown option of `$collStats`. */ Location40168 = 40168,
        /** `$facet` of what is no object, or of none. */ Location40169 = 40169,
        /** A facet that is no array. */ Location40170 = 40170,
        /** A stage of a facet that is no object. */ Location40171 = 40171,
        /** A boundary of `$bucket` that is not constant. */ Location40191 = 40191,
        /** `$bucket` with fewer than two boundaries. */ Location40192 = 40192,
        /** Boundaries of several types. */ Location40193 = 40193,
        /** Boundaries out of order. */ Location40194 = 40194,
        /** A default of `$bucket` that is not constant. */ Location40195 = 40195,
        /** An output of `$bucket` that is no object. */ Location40196 = 40196,
        /** An unknown option of `$bucket`. */ Location40197 = 40197,
        /** `$bucket` without a required option. */ Location40198 = 40198,
        /** A default of `$bucket` between its boundaries. */ Location40199 = 40199,
        /** Boundaries that are no array. */ Location40200 = 40200,
        /** `$bucket` of what is no object. */ Location40201 = 40201,
        /** `$bucket` by what is no expression. */ Location40202 = 40202,
        /** A new root that is no object. */ Location40228 = 40228,
        /** `$replaceRoot` of what is no object. */ Location40229 = 40229,
        /** An unknown option of `$replaceRoot`. */ Location40230 = 40230,
        /** `$replaceRoot` without a new root. */ Location40231 = 40231,
        /** A field of `$group` that is no accumulator. */ Location40234 = 40234,
        /** A field of `$group` with a dot. */ Location40235 = 40235,
        /** A field of `$group` with `$`. */ Location40236 = 40236,
        /** An accumulator of several values. */ Location40237 = 40237,
        /** A field of `$group` with several accumulators. */ Location40238 = 40238,
        /** `$bucketAuto` by what is no expression. */ Location40239 = 40239,
        /** `$bucketAuto` of what is no object. */ Location40240 = 40240,
        /** A number of buckets that is none. */ Location40241 = 40241,
        /** A number of buckets beyond 32 bits, or with a fraction. */ Location40242 = 40242,
        /** A number of buckets that is not positive. */ Location40243 = 40243,
        /** An output of `$bucketAuto` that is no object. */ Location40244 = 40244,
        /** An unknown option of `$bucketAuto`. */ Location40245 = 40245,
        /** `$bucketAuto` without a required option. */ Location40246 = 40246,
        /** A granularity that is no string. */ Location40261 = 40261,
        /** `$addFields` of what is no object. */ Location40272 = 40272,
        /** `storageStats` that is no object. */ Location40279 = 40279,
        /** A stage that is not one. */ Location40323 = 40323,
        /** An unknown stage. */ Location40324 = 40324,
        /** An empty path component. */ Location40352 = 40352,
        /** `$arrayToObject` of what is no array. */ Location40386 = 40386,
        /** `$objectToArray` of what is no object. */ Location40390 = 40390,
        /** `$arrayToObject` of objects with other fields. */ Location40392 = 40392,
        /** `$arrayToObject` of a name `k` that is no string. */ Location40394 = 40394,
        /** `$arrayToObject` of a name that is no string. */ Location40395 = 40395,
        /** `$arrayToObject` of arrays that are no pairs. */ Location40397 = 40397,
        /** `$arrayToObject` of neither pairs nor objects. */ Location40398 = 40398,
        /** `$mergeObjects` of what is no object. */ Location40400 = 40400,
        /** `count` of `$collStats` that is no object. */ Location40480 = 40480,
        /** A timezone that is not known. */ Location40485 = 40485,
        /** A timezone that is no string. */ Location40517 = 40517,
        /** An unknown argument of a date expression. */ Location40535 = 40535,
        /** A date expression without `date`. */ Location40539 = 40539,
        /** A stage that a facet must not have. */ Location40600 = 40600,
        /** A stage that is not the first and has to be. */ Location40602 = 40602,
        /** An unknown argument of `$trim`. */ Location50694 = 50694,
        /** `$trim` without `input`. */ Location50695 = 50695,
        /** `$trim` of what is no object. */ Location50696 = 50696,
        /** `$trim` of what is no string. */ Location50699 = 50699,
        /** `$trim` by what is no string. */ Location50700 = 50700,
        /** `$substrBytes` from what is no position. */ Location50752 = 50752,
        /** A number outside the bounds of a function. */ Location50989 = 50989,
        /** Negative `limit`, `skip` or `batchSize`. */ Location51024 = 51024,
        /** `$atan2` of what is no number. */ Location51044 = 51044,
        /** `$atan2` by what is no number. */ Location51045 = 51045,
        /** Options in `$regex` and, before it, in `$options`. */ Location51074 = 51074,
        /** Options in `$regex` and, behind it, in `$options`. */ Location51075 = 51075,
        /** A precision of `$round` or `$trunc` beyond its bounds. */ Location51083 = 51083,
        /** `$regex` pattern that does not compile. */ Location51091 = 51091,
        /** `$regexMatch` of what is no object. */ Location51103 = 51103,
        /** `$regexMatch` in what is no string. */ Location51104 = 51104,
        /** `$regexMatch` of what is no regular expression. */ Location51105 = 51105,
        /** Options of `$regexMatch` that are no string. */ Location51106 = 51106,
        /** Options of `$regexMatch` in two places. */ Location51107 = 51107,
        /** An option that regular expressions do not have. */ Location51108 = 51108,
        /** An empty object in a projection. */ Location51270 = 51270,
        /** An empty `$project`. */ Location51272 = 51272,
        /** `$replaceOne` by what is no string. */ Location51744 = 51744,
        /** `$replaceOne` of what is no string. */ Location51745 = 51745,
        /** `$replaceOne` in what is no string. */ Location51746 = 51746,
        /** `$replaceOne` without `replacement`. */ Location51747 = 51747,
        /** `$replaceOne` without `find`. */ Location51748 = 51748,
        /** `$replaceOne` without `input`. */ Location51749 = 51749,
        /** An unknown argument of `$replaceOne`. */ Location51750 = 51750,
        /** `$replaceOne` of what is no object. */ Location51751 = 51751,
        /** A measurement that is no point under a 2dsphere index. */ Location183493 = 183493,
        /** A measurement that is no geometry under a 2dsphere index. */ Location183934 = 183934,
        /** A limit of `$filter` that is no positive integer. */ Location327391 = 327391,
        /** `$linearFill` without a sort by one field. */ Location605001 = 605001,
        /** A limit that is no integer. */ Location2107201 = 2107201,
        /** `$sortArray` of what is no object. */ Location2942500 = 2942500,
        /** An unknown argument of `$sortArray`. */ Location2942501 = 2942501,
        /** `$sortArray` without `input`. */ Location2942502 = 2942502,
        /** `$sortArray` without `sortBy`. */ Location2942503 = 2942503,
        /** `$sortArray` of what is no array. */ Location2942504 = 2942504,
        /** `$sortArray` by what is no direction. */ Location2942507 = 2942507,
        /** `$getField` with unknown arguments. */ Location3041701 = 3041701,
        /** `$getField` without `field`. */ Location3041702 = 3041702,
        /** `$getField` of a name that is no string. */ Location3041704 = 3041704,
        /** Facets that take more memory than they may. */ Location4031700 = 4031700,
        /** `$setField` of what is no object. */ Location4161100 = 4161100,
        /** An unknown argument of `$setField`. */ Location4161101 = 4161101,
        /** `$setField` without `field`. */ Location4161102 = 4161102,
        /** `$setField` without `value`. */ Location4161103 = 4161103,
        /** `$setField` in what is no object. */ Location4161105 = 4161105,
        /** `$setField` of a name that is no string. */ Location4161107 = 4161107,
        /** `$setField` without `input`. */ Location4161109 = 4161109,
        /** A variable of `let` that reads the document. */ Location4890500 = 4890500,
        /** A skip that is no integer. */ Location5107200 = 5107200,
        /** `$dateDiff` of what is no object. */ Location5166301 = 5166301,
        /** An unknown argument of `$dateDiff`. */ Location5166302 = 5166302,
        /** `$dateDiff` without a required argument. */ Location5166303 = 5166303,
        /** `$dateDiff` of what is no date. */ Location5166307 = 5166307,
        /** `$dateAdd` or `$dateSubtract` of what is no object. */ Location5166400 = 5166400,
        /** An unknown argument of `$dateAdd` or `$dateSubtract`. */ Location5166401 = 5166401,
        /** `$dateAdd` or `$dateSubtract` without a required argument. */ Location5166402 = 5166402,
        /** `$dateAdd` or `$dateSubtract` of what is no date. */ Location5166403 = 5166403,
        /** `$dateAdd` or `$dateSubtract` by what is no integer. */ Location5166405 = 5166405,
        /** A date beyond 64 bits. */ Location5166406 = 5166406,
        /** A window that ends before it begins. */ Location5339900 = 5339900,
        /** A window of rows without a sort. */ Location5339901 = 5339901,
        /** A window of values without a sort by one field. */ Location5339902 = 5339902,
        /** A rank with other arguments. */ Location5371601 = 5371601,
        /** A rank without a sort by one field. */ Location5371602 = 5371602,
        /** A rank of something. */ Location5371603 = 5371603,
        /** `$integral` of what is no number. */ Location5423900 = 5423900,
        /** `$integral` with a unit, and not by dates. */ Location5423901 = 5423901,
        /** `$integral` without a unit, and not by numbers. */ Location5423902 = 5423902,
        /** A window of dates without a unit. */ Location5429413 = 5429413,
        /** A window of values that are no numbers. */ Location5429414 = 5429414,
        /** A window with a unit of values that are no dates. */ Location5429513 = 5429513,
        /** `$dateTrunc` of what is no object. */ Location5439007 = 5439007,
        /** An unknown argument of `$dateTrunc`. */ Location5439008 = 5439008,
        /** `$dateTrunc` without a required argument. */ Location5439009 = 5439009,
        /** `$dateTrunc` of what is no date. */ Location5439012 = 5439012,
        /** A unit of time that is no string. */ Location5439013 = 5439013,
        /** A start of the week that is no day. */ Location5439015 = 5439015,
        /** A size of bins that is no integer. */ Location5439017 = 5439017,
        /** A size of bins below 1. */ Location5439018 = 5439018,
        /** `$collStats` of what is no object. */ Location5447000 = 5447000,
        /** A unit of time of no fixed length. */ Location5490710 = 5490710,
        /** `$derivative` with a unit, and not by dates. */ Location5624900 = 5624900,
        /** `$derivative` by dates without a unit. */ Location5624901 = 5624901,
        /** `$derivative` by what is no number. */ Location5624902 = 5624902,
        /** `$derivative` of nothing. */ Location5624903 = 5624903,
        /** A `$near` operator on a time-series collection. */ Location5626500 = 5626500,
        /** `$densify` of what is neither a number nor a date. */ Location5733201 = 5733201,
        /** A step of `$densify` that is not positive. */ Location5733401 = 5733401,
        /** Bounds of `$densify` out of order. */ Location5733402 = 5733402,
        /** Bounds of `$densify` that are not two. */ Location5733403 = 5733403,
        /** Bounds of `$densify` that are none. */ Location5733404 = 5733404,
        /** A date and something else as bounds. */ Location5733405 = 5733405,
        /** A number and something else as bounds. */ Location5733406 = 5733406,
        /** Bounds of partitions where there are none. */ Location5733408 = 5733408,
        /** Numbers as bounds with a unit. */ Location5733409 = 5733409,
        /** Dates as bounds without a unit. */ Location5733410 = 5733410,
        /** `$firstN` of what is no object. */ Location5787801 = 5787801,
        /** `$minN` of what is no object. */ Location5787900 = 5787900,
        /** An unknown argument of `$firstN` or `$minN`. */ Location5787901 = 5787901,
        /** An `n` that is no number. */ Location5787902 = 5787902,
        /** An `n` that is no integer. */ Location5787903 = 5787903,
        /** `$firstN` or `$minN` without `n`. */ Location5787906 = 5787906,
        /** `$firstN` or `$minN` without `input`. */ Location5787907 = 5787907,
        /** An `n` below 1. */ Location5787908 = 5787908,
        /** `$top` of what is no object. */ Location5788001 = 5788001,
        /** An unknown argument of `$top`. */ Location5788002 = 5788002,
        /** `$topN` without `n`. */ Location5788003 = 5788003,
        /** `$top` without `output`. */ Location5788004 = 5788004,
        /** `$top` without `sortBy`. */ Location5788005 = 5788005,
        /** `$firstN` of what is no array. */ Location5788200 = 5788200,
        /** `$documents` of what is no array. */ Location5858203 = 5858203,
        /** Bounds and a step of several types. */ Location5876900 = 5876900,
        /** `$densify` of too many rows. */ Location5897900 = 5897900,
        /** A filter of an index that says nothing about buckets. */ Location5916301 = 5916301,
        /** An array at the path of an index on measurements. */ Location5930501 = 5930501,
        /** Bounds that are neither numbers nor dates. */ Location5946800 = 5946800,
        /** Bounds of an unknown name. */ Location5946802 = 5946802,
        /** `$linearFill` where rows tie. */ Location6050106 = 6050106,
        /** An output of `$fill` that is no object. */ Location6050200 = 6050200,
        /** An output of `$fill` with a method and a value. */ Location6050201 = 6050201,
        /** An unknown method of `$fill`. */ Location6050202 = 6050202,
        /** `$fill` without outputs. */ Location6050203 = 6050203,
        /** `$fill` with two kinds of partitions. */ Location6050204 = 6050204,
        /** `$densify` of a number with a unit. */ Location6053600 = 6053600,
        /** `$densify` of a date without a unit. */ Location6053601 = 6053601,
        /** A bucket id could not be found within the retries. */ Location6130900 = 6130900,
        /** Two outputs of windows collide. */ Location6307900 = 6307900,
        /** A step of units with a fraction. */ Location6586400 = 6586400,
        /** A findAndModify that may be sent twice. */ Location7314600 = 7314600,
        /** `$percentile` of what is no object. */ Location7429703 = 7429703,
        /** `$median` of what is no object. */ Location7436100 = 7436100,
        /** Percentiles that are not constant. */ Location7750300 = 7750300,
        /** Percentiles that are no array. */ Location7750301 = 7750301,
        /** A percentile that is no number. */ Location7750302 = 7750302,
        /** A percentile that is not from 0 to 1. */ Location7750303 = 7750303,
        /** A window of values in descending order. */ Location8947401 = 8947401,
        /** A document names the same top-level field twice. */ Location12602102 = 12602102,
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

/// What went wrong: the server's code and a sentence that names the field and the offending value.
///
/// One pointer wide: nearly every function passes errors on, and all of them pay for what that takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<Failure>);

/// What an error says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The server's code.
    pub code: ErrorCode,
    /// A sentence without a final stop.
    pub message: String,
}

impl Error {
    /// An error with `code`.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Error(Box::new(Failure { code, message: message.into() }))
    }

    /// The sentence.
    pub fn into_message(self) -> String {
        self.0.message
    }

    /// A value that cannot be accepted.
    pub fn bad_value(message: impl Into<String>) -> Self {
        Error::new(ErrorCode::BadValue, message)
    }

    /// An argument that a command does not have.
    ///
    /// There are no transactions; and what users name is a view, which has no UUID.
    pub fn unknown_field(command: &str, name: &str) -> Self {
        let code = match name {
            "autocommit" | "startTransaction" => ErrorCode::OperationNotSupportedInTransaction,
            "collectionUUID" => ErrorCode::CollectionUUIDMismatch,
            _ => ErrorCode::IDLUnknownField,
        };
        Error::new(code, ["BSON field '", command, ".", name, "' is an unknown field"].concat())
    }

    /// An argument of the wrong type.
    pub fn type_mismatch(message: impl Into<String>) -> Self {
        Error::new(ErrorCode::TypeMismatch, message)
    }

    /// Options that are not allowed.
    pub fn invalid_options(message: impl Into<String>) -> Self {
        Error::new(ErrorCode::InvalidOptions, message)
    }

    /// Stored bytes that break the format.
    pub fn corrupt(message: impl Into<String>) -> Self {
        Error::new(ErrorCode::DataCorruptionDetected, message)
    }

    /// A broken invariant of our own.
    pub fn internal(message: impl Into<String>) -> Self {
        Error::new(ErrorCode::InternalError, message)
    }

    /// A guard that failed.
    pub fn write_conflict(message: impl Into<String>) -> Self {
        Error::new(ErrorCode::WriteConflict, message)
    }
}

impl Deref for Error {
    type Target = Failure;

    fn deref(&self) -> &Failure {
        &self.0
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.code.name(), self.code as i32, self.message)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests;
