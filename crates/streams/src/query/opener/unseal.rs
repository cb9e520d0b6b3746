//! Rows that are sealed, or must be. The service makes the row, so what it says of the columns beside the
//! seal is nobody's word and is not shown.

use super::demand::Demand;
use super::{Opener, PLANS};
use crate::query::receipts::{
    RefusedRowError, check_names, has_result, is_in_every_row, is_in_group,
};
use alpheus_encrypted_stream::announced_plan::AnnouncedPlan;
use alpheus_encrypted_stream::consumer::{Reader, SealedSum};
use alpheus_node::network::client::HttpClient;
use alpheus_node::network::error::RequestError;
use alpheus_stream_runtime::results::{SealedResult, opened};
use serde_json::{Map, Value};
use std::sync::{Arc, PoisonError};

/// A row as the service gave it.
type Row = Map<String, Value>;

const NO_KEYS: &str = "the row is sealed, and the identity folder has no consumer.txt and \
    consumer.seed: use the identity folder that asked for it";
const UNKNOWN_FORMAT: &str = "the sealed row has a format that this version does not know";

/// Whether the rows of a query must be sealed.
pub(super) struct Seal {
    is_required: bool,
    /// The names of its groups, if the consumer has noted its statement.
    groups: Option<Vec<String>>,
}

impl Opener {
    /// What the consumer knows of a query: by its own note, or since the service has said it before.
    pub(super) fn seal_of(&self, name: &str) -> Seal {
        let noted = self.asked.sealed(name);
        let is_required = noted.is_some() || self.declared().sealed.contains(name);
        let groups =
            noted.map(|create| create.group_by.into_iter().map(|word| word.text).collect());
        Seal { is_required, groups }
    }

    /// Opens a row that is sealed. One that must be and is not has no result.
    pub(super) async fn unseal(
        &self,
        client: &HttpClient,
        demand: Demand<'_>,
        row: &mut Row,
        seal: &Seal,
    ) -> Result<(), RequestError> {
        let sealed = row.shift_remove("sealed");
        if sealed.is_none() && !seal.is_required {
            return Ok(());
        }
        let groups = seal.groups.as_deref();
        if !has_result(row) {
            conceal(row, groups, Value::is_string);
            return Ok(());
        }
        let columns = match sealed {
            None => Err(refused(&RefusedRowError::NotSealed)),
            Some(sealed) => self.columns(client, demand, (&*row, sealed)).await?,
        };
        match columns {
            Ok(columns) if columns.is_empty() => conceal(row, groups, Value::is_string),
            Ok(columns) => row.extend(columns),
            Err(status) => {
                conceal(row, groups, |_| false);
                row.insert("status".to_owned(), status.into());
            }
        }
        Ok(())
    }

    /// The columns of a sealed row, by name, or why they cannot be read.
    async fn columns(
        &self,
        client: &HttpClient,
        demand: Demand<'_>,
        (row, sealed): (&Row, Value),
    ) -> Result<Result<Vec<(String, Value)>, String>, RequestError> {
        let Ok(sealed) = serde_json::from_value::<SealedResult>(sealed) else {
            return Ok(Err(UNKNOWN_FORMAT.to_owned()));
        };
        let sum = match sealed.sum() {
            None => return Ok(without_data(row)),
            Some(Err(none)) => return Ok(Err(none.to_string())),
            Some(Ok(sum)) => sum,
        };
        let reader = self.reader(client, demand, &sum).await?;
        Ok(match &*reader {
            Err(status) => Err(status.clone()),
            Ok(reader) => match is_of(row, &sum, reader.announced()) {
                Err(other) => Err(refused(&other)),
                Ok(()) => opened(reader, &sum).map(|values| {
                    let items = reader.announced().plan().select.items.iter();
                    items.map(|item| item.alias.clone()).zip(values).collect()
                }),
            },
        })
    }

    async fn reader(
        &self,
        client: &HttpClient,
        demand: Demand<'_>,
        sum: &SealedSum,
    ) -> Result<Arc<Result<Reader, String>>, RequestError> {
        let known = || self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        let of = demand.key(sum.plan);
        if let Some(reader) = known().get(&of) {
            return Ok(Arc::clone(reader));
        }
        let announced = match &self.keys {
            Some(_) => self.announced(client, sum.plan, demand).await?.map_err(|why| refused(&why)),
            None => Err(NO_KEYS.to_owned()),
        };
        let reader = Arc::new(announced.and_then(|announced| self.agree(&announced)));
        let mut readers = known();
        if readers.len() >= PLANS {
            readers.clear();
        }
        readers.insert(of, Arc::clone(&reader));
        drop(readers);
        Ok(reader)
    }

    fn agree(&self, announced: &Arc<AnnouncedPlan>) -> Result<Reader, String> {
        let (consumer, _) = self.keys.as_ref().ok_or(NO_KEYS)?;
        consumer.reader(announced).map_err(|unreadable| unreadable.to_string())
    }
}

fn refused(why: &RefusedRowError) -> String {
    format!("refused: {why}")
}

/// A window over nobody has no sum, and so no columns.
fn without_data(row: &Row) -> Result<Vec<(String, Value)>, String> {
    let nobody = row.get("population").and_then(Value::as_u64) == Some(0);
    let is_beside = |name: &str| is_in_every_row(name) || BESIDE.contains(&name);
    let is_empty = row.iter().all(|(name, value)| !value.is_number() || is_beside(name));
    if nobody && is_empty { Ok(Vec::new()) } else { Err(refused(&RefusedRowError::NotSealed)) }
}

/// Whether a sealed sum is the one of a row of its plan: for another window or group it opens as well.
fn is_of(row: &Row, sum: &SealedSum, announced: &AnnouncedPlan) -> Result<(), RefusedRowError> {
    let number = |name: &str| row.get(name).and_then(Value::as_u64);
    let times = [("window_start", sum.window.start.0), ("window_end", sum.window.end.0)];
    let same = times.iter().all(|(name, time)| number(name) == Some(time / 1000));
    if !same || !is_in_group(row, announced.plan()) {
        return Err(RefusedRowError::OtherSealed);
    }
    check_names(row, announced.plan())
}

/// What a row has beside its columns and its group.
const BESIDE: [&str; 7] = [
    "windows",
    "noise",
    "mostly_noise",
    "streams_without_report",
    "integrity",
    "members_left_out",
    "members_refused",
];

/// Takes its columns from a row. Without a note nobody knows which names are its group's; those with a
/// value that `may_be_group` stay then.
fn conceal(row: &mut Row, groups: Option<&[String]>, may_be_group: impl Fn(&Value) -> bool) {
    for (name, value) in row.iter_mut() {
        let is_group = match groups {
            Some(groups) => groups.contains(name) && value.is_string(),
            None => may_be_group(value),
        };
        if !is_group && !is_in_every_row(name) && !BESIDE.contains(&name.as_str()) {
            *value = Value::Null;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn row(text: Value) -> Row {
        text.as_object().unwrap().clone()
    }

    #[test]
    fn what_is_not_sealed_is_not_shown() {
        let plain = json!({ "window_start": 5, "region": "North", "sum_x": "999", "count_x": 9,
            "population": 3, "status": "late" });
        let shown = |groups: Option<&[String]>, keeps_texts: bool| {
            let mut shown = row(plain.clone());
            conceal(&mut shown, groups, |value| keeps_texts && value.is_string());
            Value::Object(shown)
        };
        let known = shown(Some(&["region".to_owned()]), true);
        assert_eq!(
            known,
            json!({ "window_start": 5, "region": "North", "sum_x": null, "count_x": null,
            "population": 3, "status": "late" })
        );
        assert!(shown(None, false)["region"].is_null() && shown(None, false)["sum_x"].is_null());
        assert!(shown(None, true)["count_x"].is_null());
    }

    #[test]
    fn only_a_window_over_nobody_has_no_sum() {
        let nobody = json!({ "window_start": 5, "sum_x": null, "population": 0, "status": "ok" });
        assert_eq!(without_data(&row(nobody.clone())), Ok(Vec::new()));
        for (name, value) in [("population", json!(3)), ("sum_x", json!(4))] {
            let mut other = row(nobody.clone());
            other.insert(name.to_owned(), value);
            assert!(without_data(&other).unwrap_err().contains("is not sealed"), "{name}");
        }
    }
}
