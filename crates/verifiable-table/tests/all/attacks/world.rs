//! A table, its owner, and a server with all its blocks.

use crate::support::{Server, Store, upload};
use alpheus_verifiable_table::TableKey;
use alpheus_verifiable_table::label::{Column, Kind, Order};
use alpheus_verifiable_table::layout::{ColumnDeclaration, Layout, Row};
use alpheus_verifiable_table::messages::Request;
use alpheus_verifiable_table::owner::Owner;
use alpheus_verifiable_table::parameters::Set;
use alpheus_verifiable_table::planner::Question;
use chacha20::{ChaCha20Rng, rand_core::SeedableRng};

pub(crate) const X: Kind = Kind::Column(Column(0));
pub(crate) const Y: Kind = Kind::Column(Column(1));
pub(crate) const XX: Kind = Kind::Product(Column(0), Column(0));
pub(crate) const XY: Kind = Kind::Product(Column(0), Column(1));

pub(crate) struct World {
    pub(crate) key: TableKey,
    pub(crate) owner: Owner,
    pub(crate) server: Server,
    pub(crate) store: Store,
    pub(crate) rng: ChaCha20Rng,
}

/// A table of this many full blocks. x and y are small, so that small noise could hide.
pub(crate) fn world(set: Set, blocks: i64, seed: u8) -> World {
    let mut rng = ChaCha20Rng::from_seed([seed; 32]);
    let column = || ColumnDeclaration { min: 0, max: 1000, optional: false, squares: true };
    let layout = Layout::new(vec![column(), column()], &[(0, 1)]).unwrap();
    let (key, mut store) = (TableKey::random(&mut rng), Store::new());
    let order = Order::new(2).unwrap();
    let owner = Owner::create(&key, set, order, layout, &mut rng);
    let mut owner = owner.commit(&mut store).unwrap();
    let mut server = Server::new(owner.manifest());
    let n = i64::try_from(owner.block_rows()).unwrap();
    let row = |i: i64| -> Row { vec![Some(i % 997), Some((i * i + 3) % 701)] };
    let rows: Vec<Row> = (0..blocks * n).map(row).collect();
    upload(&mut owner, &mut store, &mut server, &rows, &mut rng).unwrap();
    World { key, owner, server, store, rng }
}

impl World {
    pub(crate) fn question(&self, kind: Kind, from: u64, to: u64) -> Question {
        use alpheus_verifiable_table::layout::Moment;
        let moment = match kind {
            X => Moment::Sum(0),
            Y => Moment::Sum(1),
            XX => Moment::Square(0),
            _ => Moment::PairProduct(0, 1),
        };
        let n = self.owner.block_rows();
        let plan = self.owner.plan(moment, from * n, to * n).unwrap();
        let question = plan.question().unwrap().clone();
        assert_eq!(question.request().kind, kind);
        question
    }

    /// The server's honest answer to a request.
    pub(crate) fn answer(&self, request: &Request) -> Vec<u8> {
        self.server.answer(request).unwrap()
    }

    /// Asserts that the owner accepts the honest answer and rejects the other.
    pub(crate) fn accepts_only(&self, question: &Question, honest: &[u8], lie: &[u8], case: &str) {
        assert_ne!(honest, lie, "no lie: {case}");
        assert!(self.owner.verify(question, honest).is_ok(), "honest: {case}");
        assert!(self.owner.verify(question, lie).is_err(), "accepted: {case}");
    }
}
