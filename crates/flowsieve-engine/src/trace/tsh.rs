//! TSH, the format of the NLANR traces: records of 44 bytes, all numbers big-endian.
//!
//! ```text
//!   0         4           5                8            28                        44
//!   │ seconds │ interface │ microseconds   │ IPv4 header │ first bytes of the TCP header
//! ```
//!
//! There is no magic number and nothing in a record that is always the same, so that it is read
//! only when asked for.

use super::error::{ReadError, TraceErrorKind};
use super::format::{Batch, Class, Format, PacketSource};
use super::packet::{LinkType, MAX_BATCH, PacketRef};
use super::read_buffer::ReadBuffer;
use super::time::NANOS_PER_SECOND;

const RECORD_BYTES: usize = 44;
const STAMP_BYTES: usize = 8;

pub(super) const FORMAT: Format = Format {
    containers: &["tsh"],
    words: "",
    class: Class::Capture,
    recognise: |_| None,
    open: |buffer, _| Ok(Box::new(Tsh::open(buffer)?)),
};

#[derive(Debug, Default)]
pub(super) struct Tsh {
    packets: u64,
}

impl Tsh {
    /// Checks that the first record holds an IPv4 header, which most other files do not.
    pub(super) fn open(buffer: &mut ReadBuffer) -> Result<Self, ReadError> {
        let present = buffer.require(RECORD_BYTES)?;
        match buffer.unread().get(STAMP_BYTES) {
            _ if present == 0 => Err(ReadError::at(0, TraceErrorKind::Empty)),
            Some(version) if version >> 4 != 4 => {
                let reason = "its first record holds no IPv4 header where TSH has one; leave --input-format out";
                Err(ReadError::at(0, TraceErrorKind::NotACapture { reason: reason.into() }))
            }
            _ => Ok(Self::default()),
        }
    }
}

impl PacketSource for Tsh {
    fn fill(&mut self, buffer: &mut ReadBuffer, batch: &mut Batch) -> Result<(), ReadError> {
        let Batch { packets: out, records, .. } = batch;
        if !buffer.require_record(RECORD_BYTES, self.packets + 1)? {
            return Ok(());
        }
        let base = buffer.position() + STAMP_BYTES;
        let all = buffer.unread().chunks_exact(RECORD_BYTES).take(MAX_BATCH).enumerate();
        out.extend(all.map(|(index, record)| PacketRef {
            time_ns: time_ns(record),
            start: (base + index * RECORD_BYTES) as u32,
            captured: (RECORD_BYTES - STAMP_BYTES) as u32,
            wire: u32::from(u16::from_be_bytes([record[10], record[11]])),
            link: LinkType::RAW_IP,
        }));
        buffer.consume(out.len() * RECORD_BYTES);
        self.packets += out.len() as u64;
        if let Some(records) = records {
            records.by_link(out);
        }
        Ok(())
    }
}

fn time_ns(record: &[u8]) -> i64 {
    let seconds = u32::from_be_bytes([record[0], record[1], record[2], record[3]]);
    let microseconds = u32::from_be_bytes([0, record[5], record[6], record[7]]);
    i64::from(seconds) * NANOS_PER_SECOND + i64::from(microseconds) * 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> [u8; RECORD_BYTES] {
        let mut record = [0; RECORD_BYTES];
        record[..12].copy_from_slice(&[0, 0, 0, 7, 2, 0, 0, 15, 0x45, 0, 5, 220]);
        record
    }

    fn read(bytes: Vec<u8>) -> (Vec<PacketRef>, Option<ReadError>) {
        let mut buffer = ReadBuffer::new(Box::new(std::io::Cursor::new(bytes)));
        let mut tsh = match Tsh::open(&mut buffer) {
            Ok(tsh) => tsh,
            Err(error) => return (Vec::new(), Some(error)),
        };
        let mut all = Vec::new();
        loop {
            let mut batch = Batch::default();
            match tsh.fill(&mut buffer, &mut batch) {
                Ok(()) if batch.is_empty() => return (all, None),
                Ok(()) => all.append(&mut batch.packets),
                Err(error) => return (all, Some(error)),
            }
        }
    }

    #[test]
    fn records_become_raw_ip_packets() {
        let (packets, error) = read(record().repeat(3000));
        assert!(error.is_none());
        assert_eq!(packets.len(), 3000);
        let expected = PacketRef {
            time_ns: 7_000_015_000,
            start: 8,
            captured: 36,
            wire: 1500,
            link: LinkType::RAW_IP,
        };
        assert_eq!(packets[0], expected);
    }

    #[test]
    fn a_cut_record_ends_the_file() {
        let mut bytes = record().repeat(2);
        bytes.pop();
        let (packets, error) = read(bytes);
        assert_eq!(packets.len(), 1);
        let kind = error.unwrap().kind;
        assert!(
            matches!(kind, TraceErrorKind::CutInRecord { packet: 2, promised: 44, present: 43 }),
            "{kind:?}"
        );
    }

    #[test]
    fn something_else_is_refused() {
        let (_, error) = read(vec![0; 88]);
        assert!(matches!(error.unwrap().kind, TraceErrorKind::NotACapture { .. }));
        let (_, error) = read(Vec::new());
        assert!(matches!(error.unwrap().kind, TraceErrorKind::Empty));
    }
}
