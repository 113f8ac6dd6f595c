//! `--anonymize` and its key.

use super::say::say;
use anyhow::{Context, Result, anyhow};
use clap::Args;
use flowsieve::anonymize::{AnonymizeKey, KEY_BYTES, VendorPart};
use flowsieve_engine::internal::Shown;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

// How addresses are replaced.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Privacy")]
pub(crate) struct AnonymizeArgs {
    /// Replace IP addresses by others that keep prefixes (Crypto-PAn)
    ///
    /// Addresses of one network stay in one network, for IPv4 and IPv6. In packets that are
    /// written, MAC addresses are replaced, too. Host names and payload stay. Without a key file
    /// the key is random, and results of different runs cannot be joined.
    #[arg(long, hide_short_help = true)]
    anonymize: bool,

    /// The secret that the replacement follows from: a file of 32 random bytes
    ///
    /// Make one with `head -c 32 /dev/urandom > key`, and keep it secret. Implies --anonymize.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    anonymize_key: Option<PathBuf>,
}

// How MAC addresses are replaced in packets that are written.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Privacy")]
pub(crate) struct VendorArgs {
    /// Keep the vendor in MAC addresses: replace only their last three bytes
    ///
    /// Addresses that were given locally name no vendor, and are replaced as a whole.
    #[arg(long, requires = "AnonymizeArgs", hide_short_help = true)]
    keep_vendors: bool,
}

impl VendorArgs {
    /// Returns what happens to the vendor's part.
    pub(crate) const fn part(self) -> VendorPart {
        if self.keep_vendors { VendorPart::Kept } else { VendorPart::Replaced }
    }
}

impl AnonymizeArgs {
    /// Returns whether addresses are replaced.
    pub(crate) fn is_wanted(&self) -> bool {
        self.anonymize || self.anonymize_key.is_some()
    }

    /// Returns these inputs and the file of the key: no result takes the place of either.
    pub(crate) fn with_key(&self, inputs: &[PathBuf]) -> Vec<PathBuf> {
        inputs.iter().chain(&self.anonymize_key).cloned().collect()
    }

    /// Returns the key, or `None` if addresses are not replaced. Says if the key is random.
    pub(crate) fn key(&self, quiet: bool) -> Result<Option<AnonymizeKey>> {
        if let Some(path) = &self.anonymize_key {
            return read(path).map(Some);
        }
        if !self.anonymize {
            return Ok(None);
        }
        let mut bytes = [0; KEY_BYTES];
        getrandom::fill(&mut bytes).context("the system has no random numbers for a key")?;
        if !quiet {
            say(format_args!(
                "flowsieve: addresses are replaced by a random key, so that these results cannot be joined with others; --anonymize-key takes one from a file"
            ));
        }
        Ok(Some(AnonymizeKey::new(bytes)))
    }
}

fn read(path: &Path) -> Result<AnonymizeKey> {
    let make = format!("make a key with: head -c {KEY_BYTES} /dev/urandom > FILE");
    let mut bytes = Vec::new();
    // One byte more shows that a file is too long.
    File::open(path)
        .and_then(|file| file.take(KEY_BYTES as u64 + 1).read_to_end(&mut bytes))
        .with_context(|| format!("{}: the key cannot be read; {make}", path.shown()))?;
    let there = match bytes.len() {
        length if length > KEY_BYTES => "more are there".to_owned(),
        length => format!("{length} are there"),
    };
    let key = <[u8; KEY_BYTES]>::try_from(bytes).map_err(|_| {
        let path = path.shown();
        anyhow!("{path}: a key has {KEY_BYTES} bytes, and {there}; {make}")
    })?;
    Ok(AnonymizeKey::new(key))
}
