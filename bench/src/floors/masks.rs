//! The PRF calls and additions of one controller's window.

use aes::cipher::consts::U16;
use aes::cipher::{
    BlockCipherEncBackend, BlockCipherEncClosure, BlockCipherEncrypt, BlockSizeUser,
};
use aes::{Aes128Enc, Block};

/// Both rounds of a window: for each neighbour's expanded key twice the PRF on
/// as many blocks as the words need, added up. `wide`: the PRF takes 240 bits
/// and so one AES call more.
pub(crate) fn window(keys: &[Aes128Enc], neighbours: &[u32], token: &mut [u64], wide: bool) {
    for round in [1, 2] {
        for neighbour in neighbours {
            keys[*neighbour as usize].encrypt_with_backend(Add { round, wide, token });
        }
    }
}

struct Add<'a> {
    round: u64,
    wide: bool,
    token: &'a mut [u64],
}

impl BlockSizeUser for Add<'_> {
    type BlockSize = U16;
}

impl BlockCipherEncClosure for Add<'_> {
    #[inline(always)]
    fn call<B: BlockCipherEncBackend<BlockSize = U16>>(self, aes: &B) {
        let encrypt = |input: u128| {
            let mut block = Block::from(input.to_le_bytes());
            aes.encrypt_block_inplace(&mut block);
            u128::from_le_bytes(block.0)
        };
        let first = u128::from(self.round) << 64;
        let first = if self.wide { encrypt(first) } else { first };
        let (pairs, odd) = self.token.as_chunks_mut::<2>();
        let mut j = first;
        for [low, high] in pairs {
            let pad = encrypt(j);
            j = j.wrapping_add(1);
            *low = low.wrapping_add(pad as u64);
            *high = high.wrapping_add((pad >> 64) as u64);
        }
        odd.iter_mut().for_each(|last| *last = last.wrapping_add(encrypt(j) as u64));
    }
}
