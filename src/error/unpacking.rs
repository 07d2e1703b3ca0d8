//! The codes of one stage, which has as many as all others together have for ten.

/// The table of codes with those of `$_internalUnpackBucket` and `$_unpackBucket`.
macro_rules! with_unpacking {
    ($table:ident { $($codes:tt)* }) => {
        $table! {
            $($codes)*
            numbered {
                /** `$_internalUnpackBucket` of what is no object. */ Location5346500 = 5346500,
                /** `include` or `exclude` that is no array. */ Location5346501 = 5346501,
                /** A name of `include` or `exclude` that is no string. */ Location5346502 = 5346502,
                /** A name of `include` or `exclude` with a dot. */ Location5346503 = 5346503,
                /** `timeField` of `$_internalUnpackBucket` that is no string. */ Location5346504 = 5346504,
                /** `metaField` of `$_internalUnpackBucket` that is no string. */ Location5346505 = 5346505,
                /** An unknown parameter of `$_internalUnpackBucket`. */ Location5346506 = 5346506,
                /** `$_internalUnpackBucket` without `timeField`. */ Location5346508 = 5346508,
                /** A bucket to be unpacked that has no measurements. */ Location5346509 = 5346509,
                /** A bucket to be unpacked that has no fields. */ Location5346510 = 5346510,
                /** A bucket to be unpacked without the column of times. */ Location5346700 = 5346700,
                /** A bucket to be unpacked whose `meta` is undefined. */ Location5369600 = 5369600,
                /** A bucket to be unpacked that has `meta`, and no metaField was named. */ Location5369601 = 5369601,
                /** `include` and `exclude`. */ Location5408000 = 5408000,
                /** `computedMetaProjFields` that is no array. */ Location5509900 = 5509900,
                /** A name of `computedMetaProjFields` that is no string. */ Location5509901 = 5509901,
                /** A name of `computedMetaProjFields` with a dot. */ Location5509902 = 5509902,
                /** `bucketMaxSpanSeconds` that is no int32. */ Location5510600 = 5510600,
                /** `bucketMaxSpanSeconds` that is not above 0. */ Location5510601 = 5510601,
                /** `$_internalUnpackBucket` without `bucketMaxSpanSeconds`. */ Location5510602 = 5510602,
                /** `metaField` of `$_internalUnpackBucket` with a dot. */ Location5545700 = 5545700,
                /** `$_unpackBucket` of what is no object. */ Location5612400 = 5612400,
                /** `timeField` of `$_unpackBucket` that is no string. */ Location5612401 = 5612401,
                /** `metaField` of `$_unpackBucket` that is no string. */ Location5612402 = 5612402,
                /** `metaField` of `$_unpackBucket` with a dot. */ Location5612403 = 5612403,
                /** An unknown parameter of `$_unpackBucket`. */ Location5612404 = 5612404,
                /** `$_unpackBucket` without `timeField`. */ Location5612405 = 5612405,
                /** A bucket to be unpacked of a version that there is not. */ Location5857900 = 5857900,
                /** A bucket to be unpacked without `control`. */ Location5857902 = 5857902,
                /** A bucket to be unpacked without `control.version`. */ Location5857903 = 5857903,
                /** `assumeNoMixedSchemaData` of `$_internalUnpackBucket` that is no boolean. */ Location6067202 = 6067202,
                /** `assumeNoMixedSchemaData` of `$_unpackBucket` that is no boolean. */ Location6067203 = 6067203,
                /** A column of fewer elements than its bucket has measurements. */ Location6067601 = 6067601,
                /** A bucket to be unpacked without `control.min`. */ Location6460203 = 6460203,
                /** A bucket to be unpacked with no date in `control.min`. */ Location6460204 = 6460204,
                /** A bucket to be unpacked without `control.max`. */ Location6460205 = 6460205,
                /** A bucket to be unpacked with no date in `control.max`. */ Location6460206 = 6460206,
                /** `includeMinTimeAsMetadata` that is no boolean. */ Location6460208 = 6460208,
                /** `includeMaxTimeAsMetadata` that is no boolean. */ Location6460209 = 6460209,
                /** `usesExtendedRange` that is no boolean. */ Location6646901 = 6646901,
                /** `eventFilter` that is no object. */ Location7026902 = 7026902,
                /** `wholeBucketFilter` that is no object. */ Location7026903 = 7026903,
                /** A second stage that unpacks. */ Location7183900 = 7183900,
                /** `fixedBuckets` that is no boolean. */ Location7823300 = 7823300,
                /** `timeField` of `$_internalUnpackBucket` with a null byte. */ Location9568701 = 9568701,
                /** `metaField` of `$_internalUnpackBucket` with a null byte. */ Location9568702 = 9568702,
                /** `timeField` of `$_unpackBucket` with a null byte. */ Location9568703 = 9568703,
                /** `metaField` of `$_unpackBucket` with a null byte. */ Location9568704 = 9568704,
                /** A name of `include` or `exclude` with a null byte. */ Location9568705 = 9568705,
                /** A name of `computedMetaProjFields` with a null byte. */ Location9568706 = 9568706,
            }
        }
    };
}

pub(super) use with_unpacking;
