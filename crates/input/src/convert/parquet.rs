//! Parquet as delimited text.
//!
//! Times are written as ISO 8601: with `Z` if the file says that they are in UTC, else without a
//! zone. Members of groups have the names of both with a dot between them. Lists, maps and bytes
//! are refused with a specific error.

use super::{ConvertError, Writer};
use ::parquet::basic::{Compression, ConvertedType, LogicalType, TimeUnit, Type};
use ::parquet::file::metadata::ColumnChunkMetaData;
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::record::{Field, Row};
use ::parquet::schema::types::{ColumnDescriptor, SchemaDescriptor, TypePtr};
use bytes::Bytes;
use std::panic::{AssertUnwindSafe, catch_unwind};
use time::{Duration, UtcDateTime};

/// How the values of a column are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueForm {
    /// As they are.
    Plain,
    /// Counted from 1970, with so many decimal places of a second, and whether in UTC.
    Time(u32, bool),
}

/// Converts a file. The library panics at some files that are broken.
pub(super) fn to_text(bytes: Vec<u8>) -> Result<Vec<u8>, ConvertError> {
    let read = catch_unwind(AssertUnwindSafe(|| read(bytes)));
    read.unwrap_or_else(|_| Err(broken()))
}

fn broken() -> ConvertError {
    // The library's own messages may hold values.
    ConvertError::Parquet("it is broken".to_owned())
}

fn read(bytes: Vec<u8>) -> Result<Vec<u8>, ConvertError> {
    let length = bytes.len() as u64;
    let file = SerializedFileReader::new(Bytes::from(bytes)).map_err(|_| broken())?;
    let meta = file.metadata();
    let chunks = || meta.row_groups().iter().flat_map(|group| group.columns());
    if !chunks().all(|chunk| lies_within(chunk, length)) {
        return Err(broken());
    }
    for compression in chunks().map(|column| column.compression()) {
        if !matches!(
            compression,
            Compression::UNCOMPRESSED | Compression::SNAPPY | Compression::ZSTD(_)
        ) {
            let name = format!("{compression}");
            let name = name.split('(').next().unwrap_or_default().to_lowercase();
            let says =
                format!("it is compressed with {name}, and only snappy and zstd are supported");
            return Err(ConvertError::Parquet(says));
        }
    }
    let schema = meta.file_metadata().schema_descr();
    let (written, types) = (columns(schema)?, schema.root_schema().get_fields());
    let mut writer = Writer::new();
    writer.row(written.iter().map(|(name, _)| name));
    for row in file.get_row_iter(None).map_err(|_| broken())? {
        let mut cells = Vec::with_capacity(written.len());
        add(&row.map_err(|_| broken())?, types, &written, &mut cells);
        writer.row(&cells);
    }
    Ok(writer.end())
}

/// Whether a column's bytes lie within a file of this length.
fn lies_within(chunk: &ColumnChunkMetaData, length: u64) -> bool {
    let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
    let (Ok(start), Ok(bytes)) = (u64::try_from(start), u64::try_from(chunk.compressed_size()))
    else {
        return false;
    };
    start.checked_add(bytes).is_some_and(|end| end <= length)
}

/// The name of each column, and how it is written.
fn columns(schema: &SchemaDescriptor) -> Result<Vec<(String, ValueForm)>, ConvertError> {
    let column = |at: usize| {
        let column = schema.column(at);
        let name = column.path().parts().join(".");
        if column.max_rep_level() > 0 {
            return Err(ConvertError::ParquetColumn { name, kind: "lists or maps".to_owned() });
        }
        match written(&column) {
            Some(written) => Ok((name, written)),
            None => {
                let kind = format!("values of the kind {}", column.physical_type());
                Err(ConvertError::ParquetColumn { name, kind })
            }
        }
    };
    (0..schema.num_columns()).map(column).collect()
}

/// How a column is written; none if it is not supported.
fn written(column: &ColumnDescriptor) -> Option<ValueForm> {
    use ConvertedType as Converted;
    if let Some(LogicalType::Timestamp(time)) = column.logical_type_ref() {
        let places = match time.unit {
            TimeUnit::MILLIS => 3,
            TimeUnit::MICROS => 6,
            TimeUnit::NANOS => 9,
        };
        return Some(ValueForm::Time(places, time.is_adjusted_to_u_t_c));
    }
    let plain = match (column.physical_type(), column.converted_type()) {
        (_, Converted::TIMESTAMP_MILLIS) => return Some(ValueForm::Time(3, true)),
        (_, Converted::TIMESTAMP_MICROS) => return Some(ValueForm::Time(6, true)),
        (Type::INT96, _) => return Some(ValueForm::Time(3, false)),
        (Type::BOOLEAN | Type::FLOAT | Type::DOUBLE, _) => true,
        (Type::INT32, converted) => !matches!(converted, Converted::INTERVAL | Converted::UTF8),
        (Type::INT64, converted) => !matches!(converted, Converted::INTERVAL | Converted::UTF8),
        (Type::BYTE_ARRAY, converted) => matches!(
            converted,
            Converted::UTF8
                | Converted::ENUM
                | Converted::JSON
                | Converted::DECIMAL
                | Converted::NONE
        ),
        (Type::FIXED_LEN_BYTE_ARRAY, converted) => {
            converted == Converted::DECIMAL
                || column.logical_type_ref() == Some(&LogicalType::Float16)
        }
    };
    plain.then_some(ValueForm::Plain)
}

/// Adds the cells of a row of these types, and those of the groups in it.
fn add(row: &Row, types: &[TypePtr], written: &[(String, ValueForm)], cells: &mut Vec<String>) {
    for ((_, field), kind) in row.get_column_iter().zip(types) {
        match field {
            Field::Group(group) => add(group, kind.get_fields(), written, cells),
            // A group that lacks has as many empty cells as it has columns.
            _ if kind.is_group() => cells.resize(cells.len() + leaves(kind), String::new()),
            _ => {
                let written = written.get(cells.len()).map_or(ValueForm::Plain, |(_, own)| *own);
                cells.push(cell(field, written));
            }
        }
    }
}

/// The number of columns of a type.
fn leaves(kind: &TypePtr) -> usize {
    if kind.is_group() { kind.get_fields().iter().map(leaves).sum() } else { 1 }
}

fn cell(field: &Field, written: ValueForm) -> String {
    let count = match field {
        Field::Long(count) | Field::TimestampMillis(count) | Field::TimestampMicros(count) => {
            Some(*count)
        }
        _ => None,
    };
    if let (ValueForm::Time(places, utc), Some(count)) = (written, count) {
        return moment(count, places, utc);
    }
    match field {
        Field::Null => String::new(),
        Field::Str(text) => text.clone(),
        Field::Bytes(bytes) => String::from_utf8_lossy(bytes.data()).into_owned(),
        Field::Float(number) => number.to_string(),
        Field::Double(number) => number.to_string(),
        Field::Float16(number) => number.to_string(),
        other => other.to_string(),
    }
}

/// A time as text, such as `2024-01-31T12:30:00.250Z`; the count itself if no calendar has it.
fn moment(count: i64, places: u32, utc: bool) -> String {
    let second = 10i64.pow(places);
    let (seconds, behind) = (count.div_euclid(second), count.rem_euclid(second));
    let at = UtcDateTime::UNIX_EPOCH.checked_add(Duration::seconds(seconds));
    let Some(at) = at else { return count.to_string() };
    let (hour, minute, second) = at.as_hms();
    let behind = if behind == 0 {
        String::new()
    } else {
        format!(".{behind:0width$}", width = places as usize)
    };
    let zone = if utc { "Z" } else { "" };
    format!("{}T{hour:02}:{minute:02}:{second:02}{behind}{zone}", at.date())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_iso() {
        for (count, places, utc, expected) in [
            (1_706_704_200_250, 3, true, "2024-01-31T12:30:00.250Z"),
            (1_706_704_200_000_000_001, 9, false, "2024-01-31T12:30:00.000000001"),
            (-1, 6, false, "1969-12-31T23:59:59.999999"),
            (0, 3, true, "1970-01-01T00:00:00Z"),
        ] {
            assert_eq!(moment(count, places, utc), expected);
        }
        assert_eq!(moment(i64::MAX, 3, true), i64::MAX.to_string());
    }

    /// Files that pyarrow 26 wrote: `pyarrow.parquet.write_table` of a table with 24 rows.
    const SNAPPY: &[u8] = include_bytes!("../../tests/readings-snappy.parquet");
    const ZSTD: &[u8] = include_bytes!("../../tests/readings-zstd.parquet");
    const LISTS: &[u8] = include_bytes!("../../tests/lists.parquet");
    const GZIP: &[u8] = include_bytes!("../../tests/gzip.parquet");
    /// That with a few changed bytes, at which the library panics.
    const NEGATIVE: &[u8] = include_bytes!("../../tests/negative-offset.parquet");
    const NO_DICTIONARY: &[u8] = include_bytes!("../../tests/no-dictionary.parquet");

    #[test]
    fn files_of_another_library_become_rows() {
        let text = |bytes: &[u8]| String::from_utf8(to_text(bytes.to_vec()).unwrap()).unwrap();
        let snappy = text(SNAPPY);
        assert_eq!(snappy, text(ZSTD));
        let lines: Vec<&str> = snappy.lines().collect();
        assert_eq!(lines.len(), 25);
        assert_eq!(
            lines[0],
            "\"person\",\"at\",\"local\",\"steps\",\"paid\",\"ratio\",\"worn\",\"body.pulse\",\"body.place\""
        );
        let third = "\"p0\",\"2024-01-01T03:30:00.000250Z\",\"2024-01-01T03:30:00.000250000\",30,100.75,0.30000000000000004,\"false\",63,\"wrist\"";
        assert_eq!(lines[4], third);
        assert!(lines[6].contains(",\"\",101.25,"), "a null: {}", lines[6]);
        assert!(lines[8].ends_with(",\"false\",\"\",\"\""), "a group that lacks: {}", lines[8]);
    }

    #[test]
    fn what_is_not_supported_is_named() {
        for (bytes, says) in [
            (LISTS, "column \"a.list.element\" holds lists or maps"),
            (GZIP, "compressed with gzip"),
            (&SNAPPY[..600], "it is broken"),
            (NEGATIVE, "it is broken"),
            (NO_DICTIONARY, "it is broken"),
            (b"PAR1", "it is broken"),
        ] {
            let error = to_text(bytes.to_vec()).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
