//! Whether a policy is one that the schema offers. Plans take over what their
//! streams' policies ask for, so a policy of somebody's own making would speak
//! for everybody.

use super::{ResolvedOption, ResolvedPolicy};
use crate::schema::{OptionKind, PolicyOption, Schema};

/// A policy that the schema does not offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotOffered {
    /// It was resolved against another schema.
    #[error("the policy speaks of {given} attributes, and the schema has {known}")]
    Attributes {
        /// Of the policy.
        given: usize,
        /// Of the schema.
        known: usize,
    },
    /// An alternative is none of the schema's, with one of its windows and
    /// populations, for this attribute.
    #[error(
        "attribute {attribute}: the schema offers no option like the alternative at {place}; choose among those that it lists"
    )]
    Option {
        /// Position of the attribute.
        attribute: u16,
        /// Of the alternative, from 0.
        place: usize,
    },
    /// An alternative stands twice.
    #[error("attribute {attribute}: the alternative at {place} stands there twice; say it once")]
    Twice {
        /// Position of the attribute.
        attribute: u16,
        /// Of the second one, from 0.
        place: usize,
    },
}

impl Schema {
    /// Whether an owner may choose this: every alternative is an option that is
    /// offered for its attribute, with a window and a population of its lists and
    /// everything else as it says.
    ///
    /// # Errors
    /// [`NotOffered`] names the first that is not.
    pub fn offers(&self, policy: &ResolvedPolicy) -> Result<(), NotOffered> {
        let (given, known) = (policy.attributes.len(), self.attributes.len());
        if given != known {
            return Err(NotOffered::Attributes { given, known });
        }
        for (attribute, own) in (0_u16..).zip(&policy.attributes) {
            for (place, chosen) in own.alternatives.iter().enumerate() {
                if !self.options.iter().any(|offer| allows(offer, attribute, chosen)) {
                    return Err(NotOffered::Option { attribute, place });
                }
                // All that differ are offered, so that there are never many of them.
                if own.alternatives.iter().take(place).any(|before| before == chosen) {
                    return Err(NotOffered::Twice { attribute, place });
                }
            }
        }
        Ok(())
    }
}

fn allows(offer: &PolicyOption, attribute: u16, chosen: &ResolvedOption) -> bool {
    // Every field of both stands here, so that a new one cannot be forgotten.
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
        dropout,
        missing_ticks,
        split_populations,
        trusted,
    } = offer;
    let ResolvedOption { window, min_population, .. } = chosen;
    let as_offered = ResolvedOption {
        name: name.clone(),
        kind: *kind,
        window: *window,
        min_population: *min_population,
        generalise: generalise.clone(),
        budget: *budget,
        to: to.clone(),
        alpha: *alpha,
        dropout: *dropout,
        missing_ticks: *missing_ticks,
        split_populations: *split_populations,
        trusted: trusted.clone(),
    };
    *kind != OptionKind::Private
        && attributes.contains(&attribute)
        && windows.contains(window)
        && clients.contains(min_population)
        && *chosen == as_offered
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Fraction;
    use crate::policy::Policies;
    use crate::time::Span;

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
    fn what_a_document_may_say_is_offered() {
        let (schema, policy) = chosen();
        assert_eq!(schema.offers(&policy), Ok(()));
        assert_eq!(schema.offers(&ResolvedPolicy::private(&schema)), Ok(()));
    }

    #[test]
    fn an_option_of_ones_own_making_is_not() {
        let odd = Fraction { numerator: 1, denominator: 1 };
        let none = Fraction { numerator: 0, denominator: 0 };
        let changes: [&dyn Fn(&mut ResolvedOption); 12] = [
            &|own| own.name.push('x'),
            &|own| own.kind = OptionKind::Public,
            &|own| own.kind = OptionKind::Private,
            &|own| own.window = Span::seconds(1),
            &|own| own.min_population = 1,
            &|own| own.to.push("me".to_owned()),
            &|own| own.alpha = odd,
            &|own| own.alpha = Fraction { numerator: 2, denominator: 6 },
            &|own| own.dropout = none,
            &|own| own.missing_ticks = 9,
            &|own| own.split_populations = true,
            &|own| own.trusted.push(crate::ids::ControllerId([0; 32])),
        ];
        for (number, change) in changes.iter().enumerate() {
            let (schema, mut policy) = chosen();
            change(&mut policy.attributes[0].alternatives[0]);
            let refused = schema.offers(&policy);
            assert!(matches!(refused, Err(NotOffered::Option { attribute: 0, .. })), "{number}");
        }
        let (schema, mut policy) = chosen();
        policy.attributes.swap(0, 1);
        assert!(matches!(schema.offers(&policy), Err(NotOffered::Option { attribute: 1, .. })));
    }

    #[test]
    fn an_option_stands_once_and_each_attribute_is_named() {
        let (schema, mut policy) = chosen();
        let again = policy.attributes[0].alternatives[1].clone();
        policy.attributes[0].alternatives.push(again);
        assert!(matches!(schema.offers(&policy), Err(NotOffered::Twice { attribute: 0, .. })));
        policy.attributes.pop();
        let refused = NotOffered::Attributes { given: 1, known: 2 };
        assert_eq!(schema.offers(&policy), Err(refused));
    }
}
