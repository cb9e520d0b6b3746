//! Why something was refused: one name for each rule. No name holds a value that
//! the other side does not know already.
