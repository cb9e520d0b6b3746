//! Whether the schema offers a policy. A plan adopts the strictest requirements of its
//! streams' policies, so a policy that someone made up would affect everyone.

use super::{MAX_SETS_PER_DAY, ResolvedOption, ResolvedPolicy};
use crate::schema::{OptionKind, PolicyOption, Schema};

/// The schema does not offer the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OfferError {
    /// It was resolved against another schema.
    #[error("the policy covers {given} attributes, but the schema has {known}")]
    Attributes {
        /// Number of attributes in the policy.
        given: usize,
        /// Number of attributes in the schema.
        known: usize,
    },
    /// For this attribute, the schema offers no such option with this window and population.
    #[error(
        "attribute {attribute}: the schema offers no option like alternative {place}; choose one that it lists"
    )]
    Option {
        /// Position of the attribute.
        attribute: u16,
        /// Position of the alternative, from 0.
        place: usize,
    },
    /// An alternative appears twice.
    #[error("attribute {attribute}: alternative {place} repeats an earlier one; remove it")]
    Twice {
        /// Position of the attribute.
        attribute: u16,
        /// Position of the second one, from 0.
        place: usize,
    },
}

impl Schema {
    /// Checks that an owner may choose this policy. Every alternative must be an option that
    /// is offered for its attribute, with one of its windows and populations and otherwise
    /// unchanged.
    ///
    /// # Errors
    /// [`OfferError`] with the first alternative that is not.
    pub fn offers(&self, policy: &ResolvedPolicy) -> Result<(), OfferError> {
        let (given, known) = (policy.attributes.len(), self.attributes.len());
        if given != known {
            return Err(OfferError::Attributes { given, known });
        }
        for (attribute, own) in (0_u16..).zip(&policy.attributes) {
            for (place, chosen) in own.alternatives.iter().enumerate() {
                if !self.options.iter().any(|offer| allows(offer, attribute, chosen)) {
                    return Err(OfferError::Option { attribute, place });
                }
                // Different ones are all offered, so there are never many of them.
                let same = |before: &ResolvedOption| {
                    let sets_per_day = chosen.sets_per_day;
                    ResolvedOption { sets_per_day, ..before.clone() } == *chosen
                };
                if own.alternatives.iter().take(place).any(same) {
                    return Err(OfferError::Twice { attribute, place });
                }
            }
        }
        Ok(())
    }
}

fn allows(offer: &PolicyOption, attribute: u16, chosen: &ResolvedOption) -> bool {
    // All fields are listed, so that a new one cannot be forgotten.
    let PolicyOption {
        name,
        kind,
        attributes,
        windows,
        clients,
        named_clients: _,
        generalise,
        budget,
        to,
        alpha,
        colluders,
        dropout,
        missing_ticks,
        split_populations,
        trusted,
        verified,
    } = offer;
    let ResolvedOption { window, min_population, sets_per_day, .. } = chosen;
    let as_offered = ResolvedOption {
        name: name.clone(),
        kind: *kind,
        window: *window,
        min_population: *min_population,
        generalise: generalise.clone(),
        budget: *budget,
        to: to.clone(),
        alpha: *alpha,
        colluders: *colluders,
        dropout: *dropout,
        missing_ticks: *missing_ticks,
        split_populations: *split_populations,
        trusted: trusted.clone(),
        verified: *verified,
        // No schema offers it: every owner may choose any bound.
        sets_per_day: *sets_per_day,
    };
    *kind != OptionKind::Private
        && sets_per_day.is_none_or(|sets| (1..=MAX_SETS_PER_DAY).contains(&sets))
        && attributes.contains(&attribute)
        && windows.contains(window)
        && clients.contains(min_population)
        && *chosen == as_offered
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fraction::Fraction;
    use crate::policy::Policies;
    use alpheus_time::Span;

    const SCHEMA: &str = "\
name: Meters
version: 1
tick: 1s
streamAttributes:
  - { name: reading, type: integer, min: 0, max: 1000, aggregations: [mean] }
  - { name: other, type: integer, min: 0, max: 1000, aggregations: [mean] }
streamPolicyOptions:
  - { name: crowd, option: aggregate, clients: [10, 20], window: [1m, 1h], attributes: [reading] }
  - { name: nothing, option: private }
";
    const CHOICE: &str = "\
schema: Meters
service: analyst
default: { reading: [{ option: crowd, clients: 10, window: 1m }, crowd], other: nothing }
";

    fn chosen() -> (Schema, ResolvedPolicy) {
        let schema = Schema::from_yaml(SCHEMA).unwrap();
        let policy = Policies::from_yaml(CHOICE, &schema).unwrap().of_owner("anybody").clone();
        (schema, policy)
    }

    #[test]
    fn every_policy_read_from_a_document_is_offered() {
        let (schema, policy) = chosen();
        assert_eq!(schema.offers(&policy), Ok(()));
        assert_eq!(schema.offers(&ResolvedPolicy::private(&schema)), Ok(()));
    }

    #[test]
    fn a_modified_option_is_not_offered() {
        let odd = Fraction { numerator: 1, denominator: 1 };
        let none = Fraction { numerator: 0, denominator: 0 };
        let changes: [&dyn Fn(&mut ResolvedOption); 15] = [
            &|own| own.name.push('x'),
            &|own| own.kind = OptionKind::Public,
            &|own| own.kind = OptionKind::Private,
            &|own| own.window = Span::seconds(1),
            &|own| own.min_population = 1,
            &|own| own.to.push("me".to_owned()),
            &|own| own.alpha = odd,
            &|own| own.alpha = Fraction { numerator: 2, denominator: 6 },
            &|own| own.colluders = 7,
            &|own| own.dropout = none,
            &|own| own.missing_ticks = 9,
            &|own| own.split_populations = true,
            &|own| own.sets_per_day = Some(0),
            &|own| own.sets_per_day = Some(MAX_SETS_PER_DAY + 1),
            &|own| own.trusted.push(crate::ids::ControllerId([0; 32])),
        ];
        for (number, change) in changes.iter().enumerate() {
            let (schema, mut policy) = chosen();
            change(&mut policy.attributes[0].alternatives[0]);
            let refused = schema.offers(&policy);
            assert!(matches!(refused, Err(OfferError::Option { attribute: 0, .. })), "{number}");
        }
        let (schema, mut policy) = chosen();
        policy.attributes[0].alternatives[0].sets_per_day = Some(4);
        assert_eq!(schema.offers(&policy), Ok(()), "an owner may be stricter");
        let (schema, mut policy) = chosen();
        policy.attributes.swap(0, 1);
        assert!(matches!(schema.offers(&policy), Err(OfferError::Option { attribute: 1, .. })));
    }

    #[test]
    fn repeated_options_and_missing_attributes_are_refused() {
        let (schema, mut policy) = chosen();
        let again = policy.attributes[0].alternatives[1].clone();
        policy.attributes[0].alternatives.push(again);
        assert!(matches!(schema.offers(&policy), Err(OfferError::Twice { attribute: 0, .. })));
        policy.attributes[0].alternatives[2].sets_per_day = Some(4);
        assert!(matches!(schema.offers(&policy), Err(OfferError::Twice { attribute: 0, .. })));
        policy.attributes.pop();
        let refused = OfferError::Attributes { given: 1, known: 2 };
        assert_eq!(schema.offers(&policy), Err(refused));
    }
}
