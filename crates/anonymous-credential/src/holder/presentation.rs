//! The parts of a presentation, before it is proven.

use super::{Hedge, Holder, session_key};
use crate::limit::Limit;
use crate::messages::Login;
use crate::schedule::Epoch;
use crate::statements::{self, Presentation};
use alpheus_crypto::group::{Element, IdentityError, Multiple, SecretScalar};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::sigma::{ElementIndex, Opening, ProvingError};

/// (b_j, s_j, s'_j) with s'_j = (1 − b_j)·s_j, and D_j = b_j·G + s_j·H.
pub(super) struct Bits {
    secrets: Vec<[SecretScalar; 3]>,
    committed: Vec<Element>,
}

/// A presentation without its proof. Its secrets are wiped on drop.
pub(super) struct UnprovenPresentation {
    pub(super) login: Login,
    pub(super) presentation: Presentation,
    pub(super) v: Element,
    z: SecretScalar,
    r: SecretScalar,
}

impl Bits {
    pub(super) fn new(limit: Limit, index: u32, hedge: &Hedge) -> Result<Self, ProvingError> {
        let secrets = |(j, bit): (u64, SecretScalar)| {
            let blind = hedge.scalar(j);
            let square = SecretScalar::from_small(1).minus(&bit).times(&blind);
            [bit, blind, square]
        };
        let secrets: Vec<_> = (4..).zip(limit.decompose(index)).map(secrets).collect();
        let (g, h) = (Element::base(), Element::second_base());
        let sums = secrets.iter().map(|[bit, blind, _]| [(bit, &g), (blind, &h)]);
        let sums: Vec<[Multiple<'_>; 2]> = sums.collect();
        let sums: Vec<&[Multiple<'_>]> = sums.iter().map(<[_; 2]>::as_slice).collect();
        let committed =
            Element::combine_all(&sums).map_err(|IdentityError| ProvingError::Identity)?;
        Ok(Self { secrets, committed })
    }

    /// Each D_j in terms of G and H, which have precomputed tables.
    pub(super) fn openings(&self, presentation: &Presentation) -> Vec<Opening> {
        let (g, h) = presentation.bases;
        let opening = |(of, [bit, blind, _]): (&ElementIndex, &[SecretScalar; 3])| Opening {
            of: *of,
            terms: vec![(bit.duplicate(), g), (blind.duplicate(), h)],
        };
        presentation.bits.iter().zip(&self.secrets).map(opening).collect()
    }
}

impl UnprovenPresentation {
    /// In the order of the statement's secrets.
    pub(super) fn witness<'a>(
        &'a self,
        m1: &'a SecretScalar,
        bits: &'a Bits,
    ) -> Vec<&'a SecretScalar> {
        [m1, &self.z, &self.r].into_iter().chain(bits.secrets.iter().flatten()).collect()
    }
}

impl Holder {
    /// A fresh randomisation of the credential, and the tag.
    pub(super) fn unproven(
        &self,
        (epoch, index): (Epoch, u32),
        hedge: &Hedge,
        message: &Digest,
        bits: &Bits,
    ) -> Result<UnprovenPresentation, ProvingError> {
        let [a, r, z] = [1, 2, 3].map(|j| hedge.scalar(j));
        let (g, h) = (Element::base(), Element::second_base());
        let (context, x1) = (self.pinned.context(epoch), &self.pinned.issuer.x1);
        // Cm = m1·Ũ + z·H, with Ũ = a·U.
        let (minus_r, m1_a) = (SecretScalar::from_small(0).minus(&r), self.m1.times(&a));
        let inverse = self.shifted(index)?;
        let made = Element::combine_all(&[
            &[(&a, &self.u)],
            &[(&a, &self.mac), (&r, &g)],
            &[(&m1_a, &self.u), (&z, &h)],
            &[(&inverse, &context)],
            &[(&z, x1), (&minus_r, &g)],
        ]);
        let made = made.map_err(|IdentityError| ProvingError::Identity)?;
        let [u, c, cm, tag, v] = made.as_slice() else { return Err(ProvingError::Identity) };
        let login = Login {
            epoch,
            holder: session_key(&hedge.seed()).verifying_key(),
            message: *message,
            u: *u,
            c: *c,
            cm: *cm,
            tag: *tag,
            bits: bits.committed.clone(),
            proof: Vec::new(),
        };
        let presentation = statements::presentation(&self.pinned, &login, v);
        Ok(UnprovenPresentation { login, presentation, v: *v, z, r })
    }
}
