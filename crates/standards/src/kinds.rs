//! Words for types, of databases, formats and standards, as the few kinds that matter here.

/// What the values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers within the bounds of their type.
    Integer {
        /// The bounds that the type itself sets.
        bounds: Option<(i64, i64)>,
    },
    /// Numbers with a point at a fixed place.
    Decimal {
        /// Digits in all.
        precision: u32,
        /// Digits behind the point.
        scale: u32,
    },
    /// Numbers with a point at any place.
    Float,
    /// True or false.
    Boolean,
    /// Text.
    Text {
        /// Greatest length in characters.
        length: Option<u64>,
    },
    /// A date or a point in time.
    Time,
    /// What a schema has no attribute for, and why.
    Other(&'static str),
}

const LIST: &str = "an event has one value of an attribute, but this is a list";
const OBJECT: &str =
    "an object without listed parts; an attribute is a single number, truth value or text";
const DURATION: &str =
    "a time of day or a span of time as text is not a number; a column of seconds would be";
const BYTES: &str = "bytes are neither a number nor text";
const UNION: &str = "its values are of several types, and none of these can be relied on";
const UNKNOWN: &str = "its type is not known here";

/// The kind of a column with these types, the most telling first.
#[must_use]
pub fn of(types: &[&str]) -> Option<Kind> {
    let mut all = types.iter().map(|word| of_word(word));
    let mut kind = all.next()?;
    for next in all {
        kind = refined(kind, next);
    }
    Some(kind)
}

/// A first kind with what a second adds to it.
fn refined(first: Kind, second: Kind) -> Kind {
    match (first, second) {
        (Kind::Other(UNKNOWN), known) => known,
        // A number is not one if the other type says that there are many.
        (_, Kind::Other(LIST)) => Kind::Other(LIST),
        (Kind::Float, number @ (Kind::Integer { .. } | Kind::Decimal { .. })) => number,
        (Kind::Integer { bounds: None }, Kind::Integer { bounds }) => Kind::Integer { bounds },
        // A whole number has only the digits before the point.
        (Kind::Integer { bounds: None }, Kind::Decimal { precision, scale }) => {
            Kind::Integer { bounds: digits(precision.saturating_sub(scale)) }
        }
        (Kind::Text { length: None }, Kind::Text { length }) => Kind::Text { length },
        (first, _) => first,
    }
}

/// What a type may be wrapped in.
const WRAPPERS: &[&str] = &["nullable(", "optional(", "lowcardinality("];
/// Types whose length or digits may stand in square brackets; of others these make a list.
const SIZED: &[&str] =
    &["varchar", "char", "character", "nvarchar", "string", "decimal", "numeric"];

/// A type in lower case, without what it is wrapped in.
fn plain(written: &str) -> String {
    let mut text = written.trim().to_ascii_lowercase();
    let inner = |text: &str| {
        let rest = WRAPPERS.iter().find_map(|wrapper| text.strip_prefix(wrapper))?;
        Some(rest.strip_suffix(')')?.trim().to_owned())
    };
    while let Some(own) = inner(&text) {
        text = own;
    }
    let rest = ["xs:", "xsd:"].iter().find_map(|space| text.strip_prefix(space));
    rest.map(str::to_owned).unwrap_or(text)
}

/// The smallest value of a type that has no sign.
#[must_use]
pub fn least(written: &str) -> Option<&'static str> {
    let text = plain(written);
    let is_unsigned = text.contains("unsigned")
        || text == "nonnegativeinteger"
        || text.strip_prefix('u').is_some_and(|rest| {
            let word = rest.trim_end_matches(|c: char| c.is_ascii_digit());
            let is_bits = word.is_empty() && !rest.is_empty();
            is_bits
                || ["int", "tinyint", "smallint", "mediumint", "integer", "bigint", "hugeint"]
                    .contains(&word)
        });
    if text == "positiveinteger" { Some("1") } else { is_unsigned.then_some("0") }
}

fn of_word(written: &str) -> Kind {
    let text = plain(written);
    // `unsigned int`
    let text = text.strip_prefix("unsigned ").unwrap_or(&text);
    let (word, rest) = text.split_at(text.find(['(', '<', '[', ' ']).unwrap_or(text.len()));
    // `IntegerType`
    let word = word.strip_suffix("type").filter(|own| own.len() > 3).unwrap_or(word);
    let rest = rest.trim_start();
    let rest = rest.strip_prefix("varying").unwrap_or(rest).trim_start();
    let sized = rest.strip_prefix('[').filter(|own| own.starts_with(|c: char| c.is_ascii_digit()));
    let sized = sized.filter(|_| SIZED.contains(&word)).and_then(|own| own.split_once(']'));
    let numbers = match sized {
        Some((inner, behind)) if !is_list(behind) => arguments(Some(inner)),
        // `integer[]`, `numeric(12,2)[]` and `text array` are lists.
        _ if is_list(rest) => return Kind::Other(LIST),
        _ => arguments(rest.strip_prefix('(').and_then(|rest| rest.split(')').next())),
    };
    let unsigned = written.to_ascii_lowercase().contains("unsigned");
    match word {
        "tinyint" if unsigned => whole(8, true),
        // It has a sign in some systems and none in others.
        "tinyint" => Kind::Integer { bounds: Some((-128, 255)) },
        "smallint" | "short" | "int2" | "int16" | "i16" | "smallserial" => whole(16, unsigned),
        "byte" if unsigned => whole(8, true),
        "i8" | "byteint" | "byte" => whole(8, false),
        "uint8" | "u8" | "utinyint" | "unsignedbyte" => whole(8, true),
        "uint16" | "u16" | "usmallint" | "unsignedshort" => whole(16, true),
        "uint32" | "u32" | "uinteger" | "unsignedint" => whole(32, true),
        "mediumint" => whole(24, unsigned),
        "i32" | "int32" | "int4" | "avro:int" => whole(32, false),
        "int" | "integer" | "bigint" | "long" | "int8" | "int64" | "i64" | "serial"
        | "bigserial" | "hugeint" | "int128" | "uint" | "uint64" | "u64" | "i128" | "u128"
        | "biginteger" | "ubigint" | "uhugeint" | "uint128" | "uint256" | "int256"
        | "unsignedlong" | "positiveinteger" | "nonnegativeinteger" | "signed" | "unsigned"
        | "year" => Kind::Integer { bounds: None },
        "decimal" | "numeric" | "number" | "dec" | "bignumeric" | "bigdecimal" | "fixed" => {
            decimal(&numbers)
        }
        "float" | "double" | "real" | "float4" | "float8" | "float32" | "float64" | "f32"
        | "f64" | "binary_float" | "binary_double" | "half" | "money" | "smallmoney"
        | "halffloat" => Kind::Float,
        "bool" | "boolean" | "bit" if numbers.first().is_none_or(|n| *n == Some(1)) => {
            Kind::Boolean
        }
        _ => decimal_of_bits(word, &numbers).unwrap_or_else(|| of_other(word, &numbers)),
    }
}

/// Whether what stands behind the first word of a type makes it a list, outside of brackets.
fn is_list(rest: &str) -> bool {
    let mut depth = 0i32;
    let outside = |c: &char| {
        depth += i32::from(matches!(c, '(' | '<'));
        let is_outside = depth == 0;
        depth -= i32::from(matches!(c, ')' | '>'));
        is_outside
    };
    let rest: String = rest.chars().filter(outside).collect();
    rest.contains('[') || rest.split_whitespace().any(|word| word == "array")
}

fn of_other(word: &str, numbers: &[Option<i64>]) -> Kind {
    match word {
        "string" | "text" | "varchar" | "varchar2" | "nvarchar" | "nvarchar2" | "char"
        | "nchar" | "character" | "bpchar" | "clob" | "nclob" | "uuid" | "enum" | "citext"
        | "longtext" | "mediumtext" | "tinytext" | "ntext" | "uniqueidentifier" | "email"
        | "str" | "fixedstring" | "longvarchar" | "url" | "uri" | "sysname" | "rowid"
        | "urowid" | "name" | "guid" | "inet" => Kind::Text {
            length: numbers.first().copied().flatten().and_then(|n| u64::try_from(n).ok()),
        },
        "timestamp"
        | "timestamp_ntz"
        | "timestamp_tz"
        | "timestamp_ltz"
        | "timestamptz"
        | "date"
        | "timestampntz"
        | "timestampltz"
        | "datetime"
        | "datetime2"
        | "datetimeoffset"
        | "date32"
        | "date-time"
        | "datetime64"
        | "smalldatetime"
        | "timestamp-millis"
        | "timestamp-micros"
        | "timestamp-nanos"
        | "local-timestamp-millis"
        | "local-timestamp-micros"
        | "instant" => Kind::Time,
        "time" | "timetz" | "interval" | "duration" | "time-millis" | "time-micros" | "period" => {
            Kind::Other(DURATION)
        }
        "array" | "list" | "set" | "repeated" | "multiset" | "nested" | "vector" => {
            Kind::Other(LIST)
        }
        "object" | "record" | "struct" | "json" | "jsonb" | "variant" | "map" | "row" | "super"
        | "dict" | "geography" | "geometry" | "xml" | "hstore" | "xmltype" => Kind::Other(OBJECT),
        "bytes" | "binary" | "varbinary" | "blob" | "bytea" | "raw" | "bfile" | "image"
        | "longblob" => Kind::Other(BYTES),
        "union" => Kind::Other(UNION),
        _ => Kind::Other(UNKNOWN),
    }
}

fn whole(bits: u32, unsigned: bool) -> Kind {
    let span = 1i64 << (bits.min(62) - u32::from(!unsigned));
    let bounds = if unsigned { (0, span - 1) } else { (-span, span - 1) };
    Kind::Integer { bounds: Some(bounds) }
}

/// Digits in all, as a star if there is no limit, and behind the point; if negative, so many zeros
/// before it.
fn decimal(numbers: &[Option<i64>]) -> Kind {
    let small = |n: i64| u32::try_from(n).ok();
    let precision = match numbers {
        // `NUMBER(*)` has any digits and any places.
        [] | [None] | [None, None] => return Kind::Float,
        [digits, ..] => digits.and_then(small).unwrap_or(MAX_DIGITS),
    };
    match numbers.get(1).copied().flatten() {
        Some(zeros) if zeros < 0 => {
            let zeros = small(zeros.saturating_neg()).unwrap_or(MAX_DIGITS);
            Kind::Decimal { precision: precision.saturating_add(zeros), scale: 0 }
        }
        scale => Kind::Decimal { precision, scale: scale.and_then(small).unwrap_or(0) },
    }
}

/// The most digits of a number in most systems.
const MAX_DIGITS: u32 = 38;

/// Digits of types that name their bits, with the places as their argument: `Decimal32(3)`. Two
/// arguments are those of other types.
fn decimal_of_bits(word: &str, numbers: &[Option<i64>]) -> Option<Kind> {
    let precision = match word {
        "decimal32" => 9,
        "decimal64" => 18,
        "decimal128" => 38,
        "decimal256" => 76,
        _ => return None,
    };
    Some(match numbers {
        [_, _, ..] => decimal(numbers),
        _ => decimal(&[Some(precision), numbers.first().copied().flatten()]),
    })
}

/// The bounds of a whole number of this many digits, if they are narrower than 64 bits.
#[must_use]
pub fn digits(precision: u32) -> Option<(i64, i64)> {
    let max = 10i64.checked_pow(precision)? - 1;
    Some((-max, max))
}

/// The numbers of a list; a star is none.
fn arguments(text: Option<&str>) -> Vec<Option<i64>> {
    let parts = text.into_iter().flat_map(|inner| inner.split(','));
    let number = |part: &str| part.split_whitespace().next().map(str::to_owned);
    let parts = parts.map_while(|part| Some((part.trim() == "*", number(part)?.parse().ok())));
    parts.take_while(|(any, number)| *any || number.is_some()).map(|(_, number)| number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_many_systems_are_known() {
        let cents = Kind::Decimal { precision: 12, scale: 2 };
        let any = Kind::Integer { bounds: None };
        for (types, kind) in [
            (&["number", "DECIMAL(12,2)"][..], cents),
            (&["number", "numeric(12, 2)"], cents),
            (&["number", "NUMBER"], Kind::Float),
            (&["number", "INT"], any),
            (&["integer", "BIGINT"], any),
            (&["integer", "NUMBER(3,0)"], Kind::Integer { bounds: Some((-999, 999)) }),
            (&["integer", "smallint"], Kind::Integer { bounds: Some((-32768, 32767)) }),
            (&["SMALLINT UNSIGNED"], Kind::Integer { bounds: Some((0, 65535)) }),
            (&["smallint(5) unsigned"], Kind::Integer { bounds: Some((0, 65535)) }),
            (&["tinyint"], Kind::Integer { bounds: Some((-128, 255)) }),
            (&["tinyint unsigned"], Kind::Integer { bounds: Some((0, 255)) }),
            (&["avro:int"], Kind::Integer { bounds: Some((i32::MIN.into(), i32::MAX.into())) }),
            (&["string", "varchar(18)"], Kind::Text { length: Some(18) }),
            (&["VARCHAR2(20 CHAR)"], Kind::Text { length: Some(20) }),
            (&["string", "bigint"], Kind::Text { length: None }),
            (&["TIMESTAMP(6) WITH TIME ZONE"], Kind::Time),
            (&["date", "STRING"], Kind::Time),
            (&["Nullable(Float64)"], Kind::Float),
            (&["character varying(10)"], Kind::Text { length: Some(10) }),
            (&["varchar[15]"], Kind::Text { length: Some(15) }),
            (&["FixedString(3)"], Kind::Text { length: Some(3) }),
            (&["numeric[12,2]"], cents),
            (&["DecimalType(12,2)"], cents),
            (&["Decimal32(3)"], Kind::Decimal { precision: 9, scale: 3 }),
            (&["decimal128(12, 2)"], cents),
            (&["NUMBER(*)"], Kind::Float),
            (&["NUMBER(*,2)"], Kind::Decimal { precision: 38, scale: 2 }),
            (&["NUMERIC(5,-2)"], Kind::Decimal { precision: 7, scale: 0 }),
            (&["integer", "DECIMAL(5,2)"], Kind::Integer { bounds: Some((-999, 999)) }),
            (&["UNSIGNED smallint"], Kind::Integer { bounds: Some((0, 65535)) }),
            (&["USMALLINT"], Kind::Integer { bounds: Some((0, 65535)) }),
            (&["ShortType"], Kind::Integer { bounds: Some((-32768, 32767)) }),
            (&["Nullable(LowCardinality(UInt8))"], Kind::Integer { bounds: Some((0, 255)) }),
            (&["boolean", "bool"], Kind::Boolean),
            (&["INTERVAL DAY(2) TO SECOND(6)"], Kind::Other(DURATION)),
            (&["quux", "int2"], Kind::Integer { bounds: Some((-32768, 32767)) }),
            (&["quux"], Kind::Other(UNKNOWN)),
        ] {
            assert_eq!(of(types), Some(kind), "{types:?}");
        }
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn types_with_brackets_or_the_word_array_are_lists() {
        for (types, kind) in [
            (&["ARRAY<STRING>"][..], Kind::Other(LIST)),
            (&["integer[]"], Kind::Other(LIST)),
            (&["numeric(12,2)[]"], Kind::Other(LIST)),
            (&["varchar(20)[]"], Kind::Other(LIST)),
            (&["varchar[20][]"], Kind::Other(LIST)),
            (&["character varying(20)[3]"], Kind::Other(LIST)),
            (&["double precision[]"], Kind::Other(LIST)),
            (&["timestamp without time zone[]"], Kind::Other(LIST)),
            (&["decimal(10,2) array"], Kind::Other(LIST)),
            (&["int4[] NOT NULL"], Kind::Other(LIST)),
            (&["bigint ARRAY[4]"], Kind::Other(LIST)),
            (&["integer", "ARRAY<INT>"], Kind::Other(LIST)),
            (&["integer", "int[]"], Kind::Other(LIST)),
            (&["number", "numeric(12,2)[]"], Kind::Other(LIST)),
            (&["STRUCT<a INT[]>"], Kind::Other(OBJECT)),
            (&["enum('a[]', 'b array')"], Kind::Text { length: None }),
            (&["STRUCT<a:INT>"], Kind::Other(OBJECT)),
        ] {
            assert_eq!(of(types), Some(kind), "{types:?}");
        }
    }

    #[test]
    fn types_without_a_sign_have_a_least_value() {
        for word in
            ["UInt64", "UBIGINT", "bigint unsigned", "UINTEGER", "u64", "uint", "Nullable(UInt64)"]
        {
            assert_eq!(least(word), Some("0"), "{word}");
        }
        assert_eq!(least("xs:positiveInteger"), Some("1"));
        for word in ["uuid", "int", "u", "union", "user", "url"] {
            assert_eq!(least(word), None, "{word}");
        }
    }
}
