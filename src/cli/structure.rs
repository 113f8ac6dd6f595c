//! The structures by name, as options take them.

use super::options::{named, one_of};
use clap::builder::TypedValueParser;
use flowsieve::comparison::Contender;
use flowsieve::filters::Structure;
use flowsieve::index::{GlobalFilter, RegionFilter};

/// Returns a filter, another counter, or the exact set alone.
pub(crate) fn structures() -> impl TypedValueParser<Value = Structure> {
    named(Structure::all(), Structure::name, Structure::summary)
}

/// Returns a structure that a comparison knows.
pub(crate) fn contenders() -> impl TypedValueParser<Value = Contender> {
    named(Contender::all(), Contender::name, Contender::summary)
}

/// Returns a structure that a comparison knows, or `None` for all but [`Contender::Planned`].
pub(crate) fn contenders_or_all() -> impl TypedValueParser<Value = Option<Contender>> {
    let all = Contender::all().map(|it| (it.name(), it.summary(), Some(it)));
    one_of(all.chain([("all", "All of them but plan", None)]).collect::<Vec<_>>())
}

/// Returns a filter of a region in an index.
pub(crate) fn filters_of_regions() -> impl TypedValueParser<Value = RegionFilter> {
    named(RegionFilter::all(), RegionFilter::name, RegionFilter::summary)
}

/// Returns a filter of the global level of an index.
pub(crate) fn global_filters() -> impl TypedValueParser<Value = GlobalFilter> {
    named(GlobalFilter::ALL, GlobalFilter::name, GlobalFilter::summary)
}
