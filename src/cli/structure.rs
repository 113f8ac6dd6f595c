//! The structures by name, as options take them.

use super::options::named;
use clap::builder::TypedValueParser;
use flowsieve::comparison::Contender;
use flowsieve::filters::{FilterKind, Structure};

/// A filter, another counter, or the exact set alone.
pub(crate) fn structures() -> impl TypedValueParser<Value = Structure> {
    let all: Vec<_> = Structure::all().collect();
    named(&all, Structure::name, Structure::summary)
}

/// A structure that a comparison knows.
pub(crate) fn contenders() -> impl TypedValueParser<Value = Contender> {
    let all: Vec<_> = Contender::all().collect();
    named(&all, Contender::name, Contender::summary)
}

/// A filter that knows the attributes of its elements.
pub(crate) fn filters_of_attributes() -> impl TypedValueParser<Value = FilterKind> {
    let kinds = FilterKind::ALL.iter().copied();
    let kinds: Vec<_> = kinds.filter(|kind| !kind.is_of_whole()).collect();
    named(&kinds, FilterKind::name, FilterKind::summary)
}
