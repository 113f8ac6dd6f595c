//! The structures by name, as options take them.

use super::options::one_of;
use clap::builder::TypedValueParser;
use flowsieve::comparison::Contender;
use flowsieve::filters::{FilterKind, Structure};

/// A filter, another counter, or the exact set alone.
pub(crate) fn structures() -> impl TypedValueParser<Value = Structure> {
    let choice = |structure: Structure| (structure.name(), structure.summary(), structure);
    one_of(Structure::all().map(choice).collect::<Vec<_>>())
}

/// A structure that a comparison knows.
pub(crate) fn contenders() -> impl TypedValueParser<Value = Contender> {
    let choice = |contender: Contender| (contender.name(), contender.summary(), contender);
    one_of(Contender::all().map(choice).collect::<Vec<_>>())
}

/// A filter that knows the attributes of its elements.
pub(crate) fn filters_of_attributes() -> impl TypedValueParser<Value = FilterKind> {
    let kinds = FilterKind::ALL
        .iter()
        .copied()
        .filter(|kind| !kind.is_of_whole());
    let choices = kinds.map(|kind| (kind.name(), kind.summary(), kind));
    one_of(choices.collect::<Vec<_>>())
}
