//! The toy container of the recipe in CONTRIBUTING.md: IP packets, each behind its second and its
//! length in six bytes, little-endian.

use super::error::ReadError;
use super::format::{Batch, Class, Format, PacketSource};
use super::packet::{LinkType, MAX_BATCH, PacketRef};
use super::read_buffer::ReadBuffer;
use super::time::NANOS_PER_SECOND;

pub(super) const FORMAT: Format = Format {
    containers: &["toycap"],
    words: "toycap",
    class: Class::Capture,
    recognise: |buffer| {
        buffer.fill(MAGIC.len());
        buffer.unread().starts_with(MAGIC).then_some("toycap")
    },
    open: |buffer, _| {
        buffer.consume(MAGIC.len());
        Ok(Box::new(Toycap { packets: 0 }))
    },
};

const MAGIC: &[u8] = b"TOYCAP\n";
const HEADER_BYTES: usize = 6;

struct Toycap {
    packets: u64,
}

impl PacketSource for Toycap {
    fn fill(&mut self, buffer: &mut ReadBuffer, batch: &mut Batch) -> Result<(), ReadError> {
        loop {
            let Some(header) = buffer.unread().first_chunk::<HEADER_BYTES>() else {
                if batch.packets.is_empty()
                    && buffer.require_record(HEADER_BYTES, self.packets + 1)?
                {
                    continue;
                }
                break;
            };
            let [seconds @ .., low, high] = *header;
            let length = HEADER_BYTES + usize::from(u16::from_le_bytes([low, high]));
            if buffer.unread().len() < length {
                if batch.packets.is_empty() && buffer.require_record(length, self.packets + 1)? {
                    continue;
                }
                break;
            }
            let captured = (length - HEADER_BYTES) as u32;
            batch.packets.push(PacketRef {
                time_ns: i64::from(u32::from_le_bytes(seconds)) * NANOS_PER_SECOND,
                start: (buffer.position() + HEADER_BYTES) as u32,
                captured,
                wire: captured,
                link: LinkType::RAW_IP,
            });
            buffer.consume(length);
            self.packets += 1;
            if batch.packets.len() == MAX_BATCH {
                break;
            }
        }
        if let Some(records) = &mut batch.records {
            records.by_link(&batch.packets);
        }
        Ok(())
    }
}
