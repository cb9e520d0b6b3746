//! Which names of columns say that numbers identify something, and which that they measure.

use crate::owner_words::owner_score;
use crate::quantities::QUANTITIES;
use crate::units::is_unit;
use crate::words::{LENGTHS, MONEY, has, words};

/// Words of numbers that identify.
const IDENTIFYING: &[&str] = &[
    "phone",
    "telephone",
    "telefon",
    "mobile",
    "zip",
    "zipcode",
    "postcode",
    "postal",
    "postalcode",
    "postleitzahl",
    "plz",
    "tel",
    "mobil",
    "handy",
    "rufnummer",
    "fax",
    "isin",
    "ver",
    "firmware",
    "revision",
    "iban",
    "isbn",
    "ean",
    "barcode",
    "sku",
    "serial",
    "imei",
    "imsi",
    "msisdn",
    "caller",
    "callee",
    "mrn",
    "vin",
    "account",
    "konto",
    "blz",
    "bic",
    "swift",
    "kostenstelle",
    "version",
    "invoice",
    "ticket",
    "case",
    "rechnung",
    "card",
    "karte",
    "rfid",
    "badge",
    "flight",
    "fips",
    "ags",
    "insee",
];

/// Ends of names that number what the word before says.
const NUMBERED: &[&str] = &["no", "nr", "num", "number"];

/// Words of what is numbered and hardly counted under such a name.
const DOCUMENTS: &[&str] = &[
    "journal",
    "voucher",
    "document",
    "receipt",
    "batch",
    "order",
    "check",
    "cheque",
    "transaction",
    "booking",
    "record",
    "beleg",
    "auftrag",
    "factura",
    "facture",
    "filter",
];

/// Whether a name ends as those of numbers that identify, and the word before does not say of
/// what: `passenger_num` may be a count.
pub(crate) fn may_be_count(name: &str) -> bool {
    let mut words = words(name);
    let last = words.pop().unwrap_or_default();
    let known = |word: &String| {
        let own = word.as_str();
        IDENTIFYING.contains(&own) || DOCUMENTS.contains(&own) || owner_score(own) > 0
    };
    NUMBERED.contains(&last.as_str()) && words.pop().is_some_and(|word| !known(&word))
}

/// Whether a name ends as those of numbers that identify.
pub(crate) fn is_id(name: &str) -> bool {
    const ENDS: &[&str] = &["no", "nr", "num", "number", "code", "version"];
    /// Compounds such as `Kontonummer`.
    const COMPOUNDS: &[&str] = &["nummer", "kennung", "kennziffer", "kennzahl", "nbr"];
    let mut words = words(name);
    let last = words.pop().unwrap_or_default();
    let before = words.pop().filter(|_| ENDS.contains(&last.as_str()));
    // `PULocationID`, and not `HUMID`.
    let marked = name.strip_suffix("ID").is_some_and(|rest| !rest.ends_with(char::is_uppercase));
    (last.ends_with("id") && owner_score(&last) > 0)
        || COMPOUNDS.iter().any(|end| last.ends_with(end) && last.len() > end.len())
        || matches!(last.as_str(), "key" | "id" | "identifier" | "ids" | "uid" | "uuid" | "guid")
        || marked
        || is_serial(name)
        || IDENTIFYING.contains(&last.as_str())
        || before.is_some_and(|word| last == "code" || is_numbered(name, &word, &last))
}

/// Whether a name is that of a serial number.
pub(crate) fn is_serial(name: &str) -> bool {
    const SERIALS: &[&str] = &["serial", "serie", "série"];
    const NUMBERS: &[&str] =
        &["no", "nr", "n", "number", "numero", "número", "numéro", "nummer", "num"];
    let compound = has(name, &["seriennummer", "serienummer", "seriennr"]);
    compound || (has(name, SERIALS) && has(name, NUMBERS))
}

/// Whether a name that ends so numbers what the word before says: something that is neither
/// measured nor counted in a unit.
fn is_numbered(name: &str, word: &str, last: &str) -> bool {
    if IDENTIFYING.contains(&word) {
        return true;
    }
    // NO is a gas.
    let gas = name.ends_with("NO") && name.contains(char::is_lowercase);
    let counted = QUANTITIES.contains(&word) || MONEY.contains(&word) || is_unit(word);
    NUMBERED.contains(&last) && !gas && !counted
}

/// Words of what is counted or measured, besides quantities and units.
const MEASURES: &[&str] = &[
    "age",
    "amount",
    "anzahl",
    "average",
    "avg",
    "bytes",
    "clicks",
    "count",
    "counts",
    "depth",
    "height",
    "length",
    "max",
    "mean",
    "median",
    "menge",
    "min",
    "number",
    "pct",
    "percent",
    "population",
    "qty",
    "quantity",
    "rate",
    "ratio",
    "score",
    "share",
    "size",
    "sum",
    "time",
    "total",
    "usage",
    "views",
    "visits",
    "volume",
    "width",
];

/// Whether a name says that numbers are counted or measured, whatever they look like.
pub(crate) fn is_measured(name: &str) -> bool {
    let measured = |word: &String| {
        let known = |list: &[&str]| list.contains(&word.as_str());
        let unit = word.len() > 1 && is_unit(word);
        unit || known(MEASURES) || known(QUANTITIES) || known(MONEY) || known(LENGTHS)
    };
    !is_id(name) && words(name).iter().any(measured)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_numbers_that_identify_are_known() {
        assert!(is_id("PULocationID") && is_id("user_id") && is_id("Phone") && !is_id("humid"));
        assert!(
            is_id("ship_postal_code") && is_id("firmware_ver") && is_measured("Anzahl Fahrten")
        );
        assert!(!is_measured("called") && !is_measured("phone_number"));
        assert!(is_id("phone_number") && is_id("ID") && !is_id("HUMID"));
        assert!(!is_id("mobile_data_mb") && !is_id("phone_battery"));
    }
}
