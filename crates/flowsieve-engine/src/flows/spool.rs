//! Flows in temporary files, from one moment of a run to a later one.
//!
//! ```text
//!     start │ end │ number │ packets, bytes forward │ reverse     7 numbers of 8 bytes
//!     ports │ what is above IP │ VLAN │ length of the name        6 numbers of 2 bytes
//!     protocol │ flags forward │ reverse │ kinds                  6 bytes
//!     addresses (4 or 16 bytes each) │ name
//! ```
//!
//! The files have no name, so they are gone when the program is, however it ends.

use super::community_id::Upper;
use super::record::{Direction, Ended, FlowRecord};
use crate::decode::Addresses;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};

/// Bytes gathered before they are written, or read at once.
const BUFFER: usize = 64 << 10;

/// Flows in a temporary file.
#[derive(Debug)]
pub(super) struct Run {
    file: File,
    flows: u64,
}

/// Writes flows to a temporary file.
#[derive(Debug)]
pub(super) struct RunWriter {
    out: BufWriter<File>,
    flows: u64,
}

/// Reads them again.
#[derive(Debug)]
pub(super) struct RunReader {
    from: BufReader<File>,
    left: u64,
}

impl Run {
    pub(super) fn read(mut self) -> io::Result<RunReader> {
        self.file.rewind().map_err(|error| explained(&error))?;
        Ok(RunReader {
            from: BufReader::with_capacity(BUFFER, self.file),
            left: self.flows,
        })
    }
}

impl RunWriter {
    pub(super) fn new() -> io::Result<Self> {
        let file = tempfile::tempfile().map_err(|error| explained(&error))?;
        Ok(Self {
            out: BufWriter::with_capacity(BUFFER, file),
            flows: 0,
        })
    }

    pub(super) fn write(&mut self, flow: &FlowRecord) -> io::Result<()> {
        encode(flow, &mut self.out).map_err(|error| explained(&error))?;
        self.flows += 1;
        Ok(())
    }

    pub(super) fn finish(self) -> io::Result<Run> {
        let file = self.out.into_inner();
        Ok(Run {
            file: file.map_err(|error| explained(&error.into_error()))?,
            flows: self.flows,
        })
    }
}

impl RunReader {
    pub(super) fn read(&mut self) -> io::Result<Option<FlowRecord>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        decode(&mut self.from)
            .map(Some)
            .map_err(|error| explained(&error))
    }
}

/// The error, with what can be done.
fn explained(error: &io::Error) -> io::Error {
    let folder = std::env::temp_dir();
    io::Error::new(
        error.kind(),
        format!(
            "flows beyond the memory go to a temporary file in {}, which failed ({error}); set TMPDIR to a folder with room, or give more --memory",
            folder.display()
        ),
    )
}

const V4: u8 = 4;
const V6: u8 = 6;
const NO_VLAN: u16 = u16::MAX;
const NO_NAME: u16 = u16::MAX;

fn encode(flow: &FlowRecord, out: &mut impl Write) -> io::Result<()> {
    let (forward, reverse) = (&flow.forward, &flow.reverse);
    for number in [
        flow.start_ns as u64,
        flow.end_ns as u64,
        flow.number,
        forward.packets,
        forward.bytes,
        reverse.packets,
        reverse.bytes,
    ] {
        out.write_all(&number.to_le_bytes())?;
    }
    let (upper, a, b) = match flow.upper {
        Upper::Ports(a, b) => (0, a, b),
        Upper::Icmp(a, b) => (1, u16::from(a), u16::from(b)),
        Upper::Portless => (2, 0, 0),
        Upper::Unknown => (3, 0, 0),
    };
    let domain = flow.domain.as_deref();
    let name = domain.map_or(NO_NAME, |name| name.len() as u16);
    for number in [
        flow.ports.0,
        flow.ports.1,
        a,
        b,
        flow.vlan.unwrap_or(NO_VLAN),
        name,
    ] {
        out.write_all(&number.to_le_bytes())?;
    }
    let ended = flow.ended as u8;
    let family = match flow.addresses {
        Addresses::V4 { .. } => V4,
        Addresses::V6 { .. } => V6,
    };
    out.write_all(&[
        flow.protocol,
        forward.tcp_flags,
        reverse.tcp_flags,
        upper,
        ended,
        family,
    ])?;
    match &flow.addresses {
        Addresses::V4 {
            source,
            destination,
        } => {
            out.write_all(source)?;
            out.write_all(destination)?;
        }
        Addresses::V6 {
            source,
            destination,
        } => {
            out.write_all(source)?;
            out.write_all(destination)?;
        }
    }
    out.write_all(domain.unwrap_or_default())
}

fn decode(from: &mut impl Read) -> io::Result<FlowRecord> {
    let mut long = [0; 7];
    for number in &mut long {
        *number = u64::from_le_bytes(array(from)?);
    }
    let mut short = [0; 6];
    for number in &mut short {
        *number = u16::from_le_bytes(array(from)?);
    }
    let [protocol, forward_flags, reverse_flags, upper, ended, family] = array(from)?;
    let [source_port, destination_port, a, b, vlan, name] = short;
    let addresses = if family == V4 {
        Addresses::V4 {
            source: array(from)?,
            destination: array(from)?,
        }
    } else {
        Addresses::V6 {
            source: array(from)?,
            destination: array(from)?,
        }
    };
    let domain = if name == NO_NAME {
        None
    } else {
        let mut domain = vec![0; usize::from(name)];
        from.read_exact(&mut domain)?;
        Some(domain.into())
    };
    let ended = Ended::ALL.get(usize::from(ended));
    Ok(FlowRecord {
        start_ns: long[0] as i64,
        end_ns: long[1] as i64,
        addresses,
        protocol,
        ports: (source_port, destination_port),
        forward: Direction {
            packets: long[3],
            bytes: long[4],
            tcp_flags: forward_flags,
        },
        reverse: Direction {
            packets: long[5],
            bytes: long[6],
            tcp_flags: reverse_flags,
        },
        vlan: (vlan != NO_VLAN).then_some(vlan),
        domain,
        upper: match upper {
            0 => Upper::Ports(a, b),
            1 => Upper::Icmp(a as u8, b as u8),
            2 => Upper::Portless,
            _ => Upper::Unknown,
        },
        ended: *ended.ok_or(io::ErrorKind::InvalidData)?,
        number: long[2],
    })
}

fn array<const N: usize>(from: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}
