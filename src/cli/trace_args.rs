//! Which packets, which elements, which slices: the options of everything that reads a trace.

use super::UsageError;
use super::units::parse_duration_ns;
use clap::{Args, ValueEnum};
use flowsieve::decode::Tunnel;
use flowsieve::elements::{ElementKind, ElementRule};
use flowsieve::pipeline::{Align, Slicing};
use flowsieve::trace::InputFormat;
use std::path::PathBuf;

// Captures as one trace, cut into elements and slices. (No doc comment: it would stand for the description of each command with these.)
#[derive(Args, Clone, Debug)]
pub(super) struct TraceArgs {
    /// Files, directories, or - for standard input
    #[arg(required = true, value_name = "CAPTURE", help_heading = "Input")]
    pub(super) captures: Vec<PathBuf>,

    /// How inputs are read; tsh must be named
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Auto, help_heading = "Input")]
    input_format: Format,

    /// What is counted
    #[arg(long, value_enum, value_name = "KIND", default_value_t = Element::HostPair, help_heading = "Elements")]
    element: Element,

    /// Count both directions as one
    #[arg(long, help_heading = "Elements")]
    undirected: bool,

    /// Which IP header counts
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = Header::Outer, help_heading = "Elements")]
    tunnel: Header,

    /// Of DNS messages count the queries only
    #[arg(long, help_heading = "Elements")]
    queries_only: bool,

    /// One more port on which DNS is spoken, besides 53
    #[arg(long, value_name = "PORT", help_heading = "Elements")]
    dns_port: Vec<u16>,

    /// Width of a time slice, such as 500ms or 5min, or `all`
    #[arg(long, default_value = "1s", value_name = "DURATION", value_parser = parse_slice, help_heading = "Time slices")]
    slice: SliceWidth,

    /// Where slices begin
    #[arg(long, value_enum, value_name = "TO", default_value_t = Boundary::Epoch, help_heading = "Time slices")]
    align: Boundary,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Format {
    /// Recognised by content
    Auto,
    /// NLANR's 44-byte records
    Tsh,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Element {
    /// Source and destination address
    HostPair,
    /// Addresses, protocol and ports
    Flow,
    /// Addresses and query name of DNS messages
    Dns,
    /// Source address
    Src,
    /// Destination address
    Dst,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Header {
    /// The outermost
    Outer,
    /// The innermost of IP in IP, GRE, ERSPAN, VXLAN, Geneve, GTP-U, Teredo, L2TP
    Inner,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Boundary {
    /// Multiples of the width since 1970
    Epoch,
    /// Multiples of the width since the first packet
    First,
}

/// `None` is one slice for everything.
#[derive(Clone, Copy, Debug)]
struct SliceWidth(Option<i64>);

fn parse_slice(text: &str) -> Result<SliceWidth, String> {
    if text == "all" {
        return Ok(SliceWidth(None));
    }
    let width = parse_duration_ns(text).map_err(|error| format!("{error}, or `all`"))?;
    match i64::try_from(width) {
        Ok(0) => Err("a time slice has a width above 0, such as 1s, or is `all`".into()),
        Ok(width) => Ok(SliceWidth(Some(width))),
        Err(_) => Err("a time slice is at most 292 years wide; `all` makes one slice".into()),
    }
}

impl TraceArgs {
    /// The kind of element.
    pub(super) fn kind(&self) -> ElementKind {
        self.element.into()
    }

    /// How inputs are recognised.
    pub(super) fn input_format(&self) -> InputFormat {
        self.input_format.into()
    }

    /// Which elements.
    pub(super) fn rule(&self) -> ElementRule {
        ElementRule {
            kind: self.kind(),
            undirected: self.undirected,
            queries_only: self.queries_only,
            dns_ports: self.dns_port.clone(),
        }
    }

    /// Which IP header counts.
    pub(super) fn tunnel(&self) -> Tunnel {
        self.tunnel.into()
    }

    /// Time slices.
    pub(super) fn slicing(&self) -> Slicing {
        Slicing {
            width_ns: self.slice.0,
            align: match self.align {
                Boundary::Epoch => Align::Epoch,
                Boundary::First => Align::First,
            },
        }
    }

    /// Checks what the types cannot say. `inputs` are the captures that were found.
    pub(super) fn check(&self, inputs: &[PathBuf]) -> Result<(), UsageError> {
        if self.undirected && matches!(self.element, Element::Src | Element::Dst) {
            return Err(UsageError(
                "--undirected needs two ends: it goes with host-pair, flow and dns".into(),
            ));
        }
        if !matches!(self.element, Element::Dns) && (self.queries_only || !self.dns_port.is_empty())
        {
            return Err(UsageError(
                "--queries-only and --dns-port are about DNS messages: add --element dns, or leave them out".into(),
            ));
        }
        if inputs.iter().filter(|path| path.as_os_str() == "-").count() > 1 {
            return Err(UsageError(
                "standard input can be read only once; name - once, or files".into(),
            ));
        }
        Ok(())
    }
}

impl From<Header> for Tunnel {
    fn from(header: Header) -> Self {
        match header {
            Header::Outer => Self::Outer,
            Header::Inner => Self::Inner,
        }
    }
}

impl From<Format> for InputFormat {
    fn from(format: Format) -> Self {
        match format {
            Format::Auto => Self::Auto,
            Format::Tsh => Self::Tsh,
        }
    }
}

impl From<Element> for ElementKind {
    fn from(element: Element) -> Self {
        match element {
            Element::HostPair => Self::HostPair,
            Element::Flow => Self::Flow,
            Element::Dns => Self::Dns,
            Element::Src => Self::Source,
            Element::Dst => Self::Destination,
        }
    }
}
