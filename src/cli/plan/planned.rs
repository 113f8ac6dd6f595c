//! The structures that are planned, by name.

use crate::cli::structure::Structure as Named;
use clap::ValueEnum;
use flowsieve::planner::Structure;

/// The structures of `count`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planned(pub(super) Structure);

impl ValueEnum for Planned {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [Planned; Structure::ALL.len()] = {
            let mut all = [Planned(Structure::Hll); Structure::ALL.len()];
            let mut i = 0;
            while i < all.len() {
                all[i] = Planned(Structure::ALL[i]);
                i += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        let help = Named::value_variants()
            .iter()
            .filter_map(ValueEnum::to_possible_value)
            .find(|value| value.get_name() == self.0.name())
            .and_then(|value| value.get_help().cloned());
        let value = clap::builder::PossibleValue::new(self.0.name());
        Some(match (self.0, help) {
            (Structure::Exact, _) => value.help("Hash sets, for comparison"),
            (Structure::Hll, _) => value.help("HyperLogLog, for comparison"),
            (_, Some(help)) => value.help(help),
            (_, None) => value,
        })
    }
}
