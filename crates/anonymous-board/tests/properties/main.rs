//! What must hold of a board, whatever the numbers, the order, and who lies.

mod complaints;
mod crashes;
mod epochs;
mod keys;
mod malice;
mod rows;
mod town;
