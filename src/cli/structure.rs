//! The structures by name, as options take them.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use flowsieve::comparison::Contender;
use flowsieve::filters::{FilterKind, Structure};

/// A filter, another counter, or the exact set alone.
pub(crate) fn structures() -> impl TypedValueParser<Value = Structure> {
    one_of(Structure::all, Structure::name, Structure::summary)
}

/// A structure that a comparison knows.
pub(crate) fn contenders() -> impl TypedValueParser<Value = Contender> {
    one_of(Contender::all, Contender::name, Contender::summary)
}

/// A filter that knows the attributes of its elements.
pub(crate) fn filters_of_attributes() -> impl TypedValueParser<Value = FilterKind> {
    let kinds = || {
        FilterKind::ALL
            .iter()
            .copied()
            .filter(|kind| !kind.is_of_whole())
    };
    one_of(kinds, FilterKind::name, FilterKind::summary)
}

/// One of these values by its name.
fn one_of<T, I>(
    all: fn() -> I,
    name: fn(T) -> &'static str,
    summary: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
    I: Iterator<Item = T> + 'static,
{
    let values = all().map(|value| PossibleValue::new(name(value)).help(summary(value)));
    PossibleValuesParser::new(values).map(move |given| {
        let mut values = all();
        let is_named = |value: &T| name(*value) == given;
        values
            .find(is_named)
            .expect("clap lets only these names pass")
    })
}
