//! An owner uploads counts of bicycles, cars and trucks to a server that lies, and is
//! caught. `cargo run -p alpheus-verifiable-table --example table_queries` shows it.

mod support;

use alpheus_verifiable_table::TableKey;
use alpheus_verifiable_table::label::Order;
use alpheus_verifiable_table::layout::{ColumnDeclaration, Layout, Moment, Row};
use alpheus_verifiable_table::owner::Owner;
use alpheus_verifiable_table::parameters::Set;
use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
use support::{AnyError, Server, Store, total, upload};

pub(crate) fn main() -> Result<(), AnyError> {
    // Fixed for the example; seed a real one from the system.
    let rng = &mut ChaCha20Rng::from_seed([7; 32]);

    // Three columns of counts; cars and trucks are a registered pair.
    let column = || ColumnDeclaration { min: 0, max: 100_000, optional: false, squares: true };
    let layout = Layout::new(vec![column(), column(), column()], &[(1, 2)])?;
    let (key, store) = (TableKey::random(rng), &mut Store::new());
    let mut owner = Owner::create(&key, Set::X128, Order::ONE, layout, rng).commit(store)?;
    let mut server = Server::new(owner.manifest());

    // Two full blocks go to the server. The other rows stay with the owner for now.
    let day = |i: i64| -> Row { vec![Some(i % 55), Some(i % 128), Some(i % 20)] };
    let days: Vec<Row> = (0..20_000).map(day).collect();
    upload(&mut owner, store, &mut server, &days, rng)?;
    println!("The server has {} blocks, the owner {} rows.", owner.blocks(), owner.tail_rows());

    // The server sums squares under encryption. The owner verifies, then decrypts.
    let squares = total(&owner, &server, Moment::Square(1), 0, 20_000)?;
    assert_eq!(squares, (0..20_000_i128).map(|i| (i % 128).pow(2)).sum());
    let products = total(&owner, &server, Moment::PairProduct(1, 2), 100, 19_000)?;
    assert_eq!(products, (100..19_000_i128).map(|i| (i % 128) * (i % 20)).sum());
    println!("Σ cars² = {squares}, Σ cars·trucks = {products}: both verified.");

    // A server that leaves out a block is caught.
    let plan = owner.plan(Moment::Sum(0), 0, 20_000)?;
    let question = plan.question().ok_or("there are whole blocks")?;
    let mut less = question.request().clone();
    less.runs[0].to -= 1;
    let error = owner.verify(question, &server.answer(&less)?).err().ok_or("it was accepted")?;
    println!("One block left out: {error}.");
    Ok(())
}
