//! Released windows of a pack as events of OpenLineage, from the plans that the service announced.

use super::Pack;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::certificate::Deployment;
use alpheus_encrypted_stream::messages::Announcement;
use alpheus_node::local_time::iso_time;
use alpheus_policy::layout::Layout;
use alpheus_policy::plan::Plan;
use alpheus_policy::schema::Schema;
use alpheus_standards::lineage::{Run, events};
use data_encoding::HEXLOWER;
use serde_json::Value;
use std::collections::HashMap;

/// The events, one a line. Windows of plans that were not announced have none.
pub(super) fn lines(
    pack: &Pack,
    exhibits: &[Value],
    namespace: &str,
    deployment: &Deployment,
) -> String {
    let plans: HashMap<String, Plan> = exhibits
        .iter()
        .filter_map(|exhibit| announced(exhibit, deployment))
        .map(|plan| (plan.id().to_string(), plan))
        .collect();
    let schema = pack.schema.clone().and_then(|own| serde_json::from_value::<Schema>(own).ok());
    let known = schema.and_then(|schema| Some((Layout::of(&schema).ok()?, schema)));
    let Some((layout, schema)) = known else { return String::new() };
    let mut text = String::new();
    for (id, start, end) in &pack.opened {
        let Some(plan) = plans.get(id).filter(|plan| plan.schema == schema.id()) else { continue };
        let (from, until) = (iso_time(*start), iso_time(*end));
        let (schema, layout, start) = (&schema, &layout, *start);
        let run = Run { namespace, plan, schema, layout, start, from: &from, until: &until };
        for event in events(&run) {
            text.push_str(&event.to_string());
            text.push('\n');
        }
    }
    text
}

fn announced(exhibit: &Value, deployment: &Deployment) -> Option<Plan> {
    let digits = exhibit.get("bytes")?.as_str().filter(|_| exhibit["kind"] == "announcement")?;
    let bytes = HEXLOWER.decode(digits.as_bytes()).ok()?;
    let signed: Signed<Announcement> = postcard::from_bytes(&bytes).ok()?;
    Some(signed.open(deployment.service()).ok()?.into_inner().plan)
}
