//! The paper's section 2 in one process: people share encrypted heart rates with a health
//! service, which learns their mean and nothing else. Run it with
//! `cargo run -p alpheus-encrypted-stream --example stream_window`.

mod support;

use std::{collections::BTreeMap, sync::Arc};

use alpheus_crypto::secret::Secret;
use alpheus_encrypted_stream::controller::{Controller, HeldStream};
use alpheus_encrypted_stream::decode::{Output, decode};
use alpheus_encrypted_stream::encode::{Encoder, Value};
use alpheus_encrypted_stream::keys::MasterSecret;
use alpheus_encrypted_stream::producer::{EventVector, Producer, Start};
use alpheus_encrypted_stream::transformer::{Shape, Transformer};
use alpheus_policy::{ids::StreamId, layout::Layout, policy::Policies, schema::Schema};
use alpheus_time::{Span, Timestamp};
use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
use support::{AnyError, Town, key};

const START: Timestamp = Timestamp(0);

pub(crate) fn main() -> Result<(), AnyError> {
    let mut rng = ChaCha20Rng::from_seed([7; 32]);
    // The service's schema: what a stream contains and what its owner may choose (§4.1).
    let schema = Arc::new(Schema::from_yaml(include_str!("support/medical.yaml"))?);
    let layout = Arc::new(Layout::of(&schema)?);
    let mut town = Town::new(&schema)?;
    // Three people, each with their own privacy controller (§2.2).
    let (mut controllers, mut producers) = (BTreeMap::new(), Vec::new());
    for person in 1..=3 {
        let (controller, producer) = join(&mut town, person, &schema, &layout, &mut rng)?;
        controllers.insert(controller.id(), controller);
        producers.push(producer);
    }
    // A query that no owner allows is refused, with the nearest one that they allow (§4.3).
    let query = "CREATE STREAM rates AS SELECT AVG(heart_rate) AS mean, COUNT(heart_rate) AS n
        WINDOW TUMBLING (SIZE 10 SECONDS) FROM MedicalSensor BETWEEN";
    let refusal = town.plan(&format!("{query} 1 AND 2")).err().ok_or("allowed")?;
    println!("May the service look at single people?\n{refusal}\n");
    // A permitted query becomes a plan, which every controller checks for itself.
    let plan = town.plan(&format!("{query} 3 AND 3"))?;
    let mut coordinator = town.coordinator(&plan)?;
    let mut service = Transformer::new(Shape::of(&schema, &layout, Span::seconds(1)), 1);
    service.register(&plan)?;
    town.deliver(START, coordinator.announce(), &mut coordinator, &mut controllers, &service)?;
    // Producers encode and encrypt; the service adds up what it cannot read (§3.2, §3.3).
    let (encoder, now) = (Encoder::new(&schema, &layout)?, Timestamp(11_000_000));
    for (producer, heart_rate) in producers.into_iter().zip([61, 74, 90]) {
        let (stream, mut frames) = (producer.stream(), Vec::new());
        let mut sink = |frame: &[u8]| frames.push(frame.to_vec());
        let mut session = producer.open(Start::First, START, &mut rng, &mut sink)?;
        let encode = |vector: &mut EventVector<'_>| {
            let values = [Value::Number(heart_rate)];
            encoder.encode(&values, &mut rng, |word, addend| vector.add(word, addend))
        };
        session.event(Timestamp(4_200_000), encode, &mut sink)?;
        session.advance(now, &mut sink)?;
        println!("{stream} sends {:02x?}…", &frames[1][25..33]);
        frames.iter().try_for_each(|frame| service.handle(0, stream, frame, now).map(|_| ()))?;
    }
    // The window closes; masked tokens open the sum, and only the sum (§3.4).
    let window = service.closable_window_by(&plan.id(), now).ok_or("no window has closed")?;
    let step = coordinator.handle_window_report(&service.close(&plan.id(), window, 0)?.into(), now);
    let outcomes = town.deliver(now, step, &mut coordinator, &mut controllers, &service)?;
    let opened = outcomes[0].result.clone()?;
    let results = decode(&plan.select, &opened.outputs)?;
    assert_eq!(results, [Output::Float(75.0), Output::Integer(3)]);
    println!("Mean and count over {} people: {results:?}", opened.population);
    Ok(())
}

/// One person's two sides. Producer and controller share a master secret, which the service
/// never has. The owner signs what may be learnt from the stream.
fn join(
    town: &mut Town,
    person: u8,
    schema: &Arc<Schema>,
    layout: &Arc<Layout>,
    rng: &mut ChaCha20Rng,
) -> Result<(Controller, Producer), AnyError> {
    let mut controller = town.controller(&Secret::random(rng), &format!("{person}'s"))?;
    let (stream, owner_key, master) =
        (StreamId([person; 16]), key(10 + person), MasterSecret::random(rng));
    let certified = town.owner(person, &owner_key)?;
    let owner = certified.id();
    let producer = Producer::for_schema(&master, stream, schema, layout)?;
    let policies = Policies::from_yaml("default: { heart_rate: aggr }", schema)?;
    let policy = policies.of_owner("anyone").clone();
    let id = schema.id();
    let (schema, layout) = (schema.clone(), layout.clone());
    controller.hold(HeldStream { stream, owner, schema, layout, master: Some(master) });
    town.annotate(&mut controller, stream, id, policy, (&certified, &owner_key))?;
    Ok((controller, producer))
}
