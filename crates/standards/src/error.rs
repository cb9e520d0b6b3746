//! Why a contract cannot be read.

/// Why a contract cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// Neither YAML nor JSON, or a key appears twice. The message is the parsing library's.
    #[error("cannot be parsed: {0}")]
    Syntax(String),
    /// The file has no content.
    #[error("the file is empty; name a data contract")]
    Empty,
    /// Longer than any real contract.
    #[error("longer than {max} bytes, the limit; import its tables in several files")]
    TooLong {
        /// The limit.
        max: usize,
    },
    /// More properties than any real contract, perhaps by references within references.
    #[error("more than {max} properties, references included; import its tables in several files")]
    TooMany {
        /// The limit.
        max: usize,
    },
    /// None of the standards that are read.
    #[error(
        "not a contract of a known standard; the known standards are the Open Data Contract Standard 3.x (`kind: DataContract`), the Data Contract Specification (`dataContractSpecification:`), dbt properties (a list of `models:` or `sources:`), Avro and JSON schemas, and Confluent metadata and rules"
    )]
    UnknownStandard,
    /// Several answers of a registry, or a type that is no record.
    #[error(
        "a list around a record, or around answers of a registry; put each record or answer into a file of its own"
    )]
    Listed,
    /// A part of another form than its standard has, which would hide what is said in it.
    #[error("`{path}` must be {form}; {instead}")]
    Form {
        /// Where it stands.
        path: String,
        /// What must stand there.
        form: &'static str,
        /// What to write.
        instead: &'static str,
    },
    /// A version of a standard that differs too much.
    #[error(
        "{standard} {version} is not supported; convert the contract to {instead} first, for example with `datacontract export`"
    )]
    Version {
        /// The standard.
        standard: &'static str,
        /// Its version in the file.
        version: String,
        /// The version that is read.
        instead: &'static str,
    },
    /// The schema in a registry's answer is no JSON.
    #[error(
        "the text under `schema` cannot be parsed: {problem}; put the subject's schema there as the registry gives it"
    )]
    Inner {
        /// What is wrong, and where in that text.
        problem: String,
    },
    /// A schema of a kind that is not read, whose fields nobody would see in the report.
    #[error(
        "Protobuf schemas are not read; import the Avro or JSON schema of the same data, or describe it in a data contract"
    )]
    Protobuf,
    /// `--table` names a table that the contract does not have.
    #[error("the contract has no table `{name}`; its tables are {known}")]
    NoSuchTable {
        /// The name.
        name: String,
        /// The tables that there are.
        known: String,
    },
    /// A written file would not be read again: a defect of this program.
    #[error(
        "the {file} that would be written is not valid: {problem}; please report this contract"
    )]
    Invalid {
        /// Which file.
        file: &'static str,
        /// What its parser says.
        problem: String,
    },
}
