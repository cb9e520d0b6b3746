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
        (Kind::Float, number @ (Kind::Integer { .. } | Kind::Decimal { .. })) => number,
        (Kind::Integer { bounds: None }, Kind::Integer { bounds }) => Kind::Integer { bounds },
        (Kind::Integer { bounds: None }, Kind::Decimal { precision, scale: 0 }) => {
            Kind::Integer { bounds: digits(precision) }
        }
        (Kind::Text { length: None }, Kind::Text { length }) => Kind::Text { length },
        (first, _) => first,
    }
}

fn of_word(written: &str) -> Kind {
    let lower = written.trim().to_ascii_lowercase();
    let inner = ["nullable(", "optional(", "lowcardinality("]
        .iter()
        .find_map(|wrapper| lower.strip_prefix(wrapper).and_then(|rest| rest.strip_suffix(')')));
    let text = inner.unwrap_or(&lower);
    let (word, rest) = text.split_at(text.find(['(', '<', '[', ' ']).unwrap_or(text.len()));
    let numbers = arguments(rest);
    // `integer[]` and `text array` are lists.
    if rest.trim_start().starts_with('[') || rest.trim() == "array" {
        return Kind::Other(LIST);
    }
    match word {
        "tinyint" if rest.contains("unsigned") => whole(8, true),
        // It has a sign in some systems and none in others.
        "tinyint" => Kind::Integer { bounds: Some((-128, 255)) },
        "smallint" | "short" | "int2" | "int16" | "i16" | "smallserial" => {
            whole(16, rest.contains("unsigned"))
        }
        "i8" | "byteint" => whole(8, false),
        "uint8" | "u8" => whole(8, true),
        "uint16" | "u16" => whole(16, true),
        "uint32" | "u32" => whole(32, true),
        "i32" | "int32" | "int4" | "avro:int" => whole(32, false),
        "int" | "integer" | "bigint" | "long" | "int8" | "int64" | "i64" | "serial"
        | "bigserial" | "mediumint" | "hugeint" | "int128" | "uint64" | "u64" | "i128" | "u128"
        | "biginteger" | "ubigint" | "uinteger" | "signed" | "unsigned" | "year" => {
            Kind::Integer { bounds: None }
        }
        "decimal" | "numeric" | "number" | "dec" | "bignumeric" | "bigdecimal" | "fixed" => {
            decimal(&numbers)
        }
        "float" | "double" | "real" | "float4" | "float8" | "float32" | "float64" | "f32"
        | "f64" | "binary_float" | "binary_double" | "half" | "money" | "smallmoney"
        | "halffloat" => Kind::Float,
        "bool" | "boolean" | "bit" if numbers.first().is_none_or(|n| *n == 1) => Kind::Boolean,
        _ => of_other(word, &numbers),
    }
}

fn of_other(word: &str, numbers: &[u64]) -> Kind {
    match word {
        "string" | "text" | "varchar" | "varchar2" | "nvarchar" | "nvarchar2" | "char"
        | "nchar" | "character" | "bpchar" | "clob" | "nclob" | "uuid" | "enum" | "citext"
        | "longtext" | "mediumtext" | "tinytext" | "ntext" | "uniqueidentifier" | "email"
        | "url" | "uri" | "sysname" | "rowid" | "urowid" | "name" | "guid" | "inet" => {
            Kind::Text { length: numbers.first().copied() }
        }
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
        _ => Kind::Other(UNKNOWN),
    }
}

fn whole(bits: u32, unsigned: bool) -> Kind {
    let span = 1i64 << (bits.min(62) - u32::from(!unsigned));
    let bounds = if unsigned { (0, span - 1) } else { (-span, span - 1) };
    Kind::Integer { bounds: Some(bounds) }
}

fn decimal(numbers: &[u64]) -> Kind {
    let number = |place: usize| numbers.get(place).and_then(|n| u32::try_from(*n).ok());
    match (number(0), number(1)) {
        (None, _) => Kind::Float,
        (Some(precision), None | Some(0)) => Kind::Decimal { precision, scale: 0 },
        (Some(precision), Some(scale)) => Kind::Decimal { precision, scale },
    }
}

/// The bounds of a whole number of this many digits, if they are narrower than 64 bits.
#[must_use]
pub fn digits(precision: u32) -> Option<(i64, i64)> {
    let max = 10i64.checked_pow(precision)? - 1;
    Some((-max, max))
}

/// The numbers in parentheses at the beginning of a text.
fn arguments(text: &str) -> Vec<u64> {
    let inner = text.strip_prefix('(').and_then(|rest| rest.split(')').next());
    let parts = inner.into_iter().flat_map(|inner| inner.split(','));
    parts.map_while(|part| part.split_whitespace().next()?.parse().ok()).collect()
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
            (&["boolean", "bool"], Kind::Boolean),
            (&["ARRAY<STRING>"], Kind::Other(LIST)),
            (&["integer[]"], Kind::Other(LIST)),
            (&["STRUCT<a:INT>"], Kind::Other(OBJECT)),
            (&["INTERVAL DAY(2) TO SECOND(6)"], Kind::Other(DURATION)),
            (&["quux", "int2"], Kind::Integer { bounds: Some((-32768, 32767)) }),
            (&["quux"], Kind::Other(UNKNOWN)),
        ] {
            assert_eq!(of(types), Some(kind), "{types:?}");
        }
        assert_eq!(of(&[]), None);
    }
}
