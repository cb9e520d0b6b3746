//! Encrypting one event: an AES keystream, minus the one before it, plus the
//! addends of the encoding, after the times that a reader needs.

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};

/// Bytes of a frame before its words: kind, session, time, time before.
const HEAD: usize = 25;

/// One stream's key and the last event's key vector.
pub(crate) struct Stream {
    key: Aes128Enc,
    t: u64,
    blocks: Vec<Block>,
    last: Vec<[u64; 2]>,
    frame: Vec<u8>,
}

impl Stream {
    /// For events of this many words.
    pub(crate) fn new(words: usize) -> Stream {
        let blocks = words.div_ceil(2);
        Stream {
            key: Aes128Enc::new(&[7; 16].into()),
            t: 0,
            blocks: vec![Block::default(); blocks],
            last: vec![[0; 2]; blocks],
            frame: vec![0; HEAD + 16 * blocks],
        }
    }

    /// Encrypts the event at `t` whose encoding adds `addends`.
    pub(crate) fn event(&mut self, t: u64, addends: &[(u16, u64)]) -> &[u8] {
        for (j, block) in (0_u64..).zip(&mut self.blocks) {
            *block = Block::from((u128::from(t) << 64 | u128::from(j)).to_be_bytes());
        }
        self.key.encrypt_blocks(&mut self.blocks);
        let (head, words) = self.frame.split_at_mut(HEAD);
        head[9..17].copy_from_slice(&self.t.to_le_bytes());
        head[17..].copy_from_slice(&t.to_le_bytes());
        self.t = t;
        let words = words.as_chunks_mut::<8>().0;
        for ((block, last), cipher) in
            self.blocks.iter().zip(&mut self.last).zip(words.as_chunks_mut::<2>().0)
        {
            let key = u128::from_le_bytes(block.0);
            let key = [key as u64, (key >> 64) as u64];
            *cipher = [0, 1].map(|i| key[i].wrapping_sub(last[i]).to_le_bytes());
            *last = key;
        }
        for (word, addend) in addends {
            let cipher = &mut words[usize::from(*word)];
            *cipher = u64::from_le_bytes(*cipher).wrapping_add(*addend).to_le_bytes();
        }
        &self.frame
    }
}
