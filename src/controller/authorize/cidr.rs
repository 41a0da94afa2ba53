//! Blocks of addresses in access control entries (KIP-1276): `10.0.0.0/8`, `2001:db8::/32`.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A block, as written in the host of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Block {
    /// Network and mask.
    V4(u32, u32),
    /// Network and mask.
    V6(u128, u128),
}

impl Block {
    /// Reads a host pattern that has a slash.
    ///
    /// # Errors
    /// What is wrong with it, in the words of the reference.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.contains(':') {
            Self::parse_v6(text)
        } else {
            Self::parse_v4(text)
        }
    }

    fn parse_v4(text: &str) -> Result<Self, String> {
        let unread = || format!("Could not parse [{text}]");
        let (address, length) = text.split_once('/').ok_or_else(unread)?;
        let numbers: Option<Vec<u32>> = address.split('.').map(|part| digits(part, 3)).collect();
        let numbers: [u32; 4] = numbers.and_then(|n| n.try_into().ok()).ok_or_else(unread)?;
        let length = digits(length, 2).ok_or_else(unread)?;
        let mut network = 0;
        for number in numbers {
            network = network << 8 | in_range(number, 255)?;
        }
        let mask = u32::MAX
            .checked_shl(32 - in_range(length, 32)?)
            .unwrap_or(0);
        Ok(Self::V4(network & mask, mask))
    }

    fn parse_v6(text: &str) -> Result<Self, String> {
        let unread = |why: &str| format!("Could not parse [{text}]{why}");
        let (address, length) = text
            .split_once('/')
            .ok_or_else(|| unread(" - missing prefix length"))?;
        let length: i32 = length
            .parse()
            .map_err(|_| unread(" - invalid prefix length"))?;
        let length = u32::try_from(length).ok().filter(|length| *length <= 128);
        let length = length.ok_or_else(|| unread(" - prefix length must be between 0 and 128"))?;
        let unread = |why: &str| format!("Could not parse [{address}]{why}");
        let network = v6(address).ok_or_else(|| unread(""))?;
        if network.to_ipv4_mapped().is_some() {
            return Err(unread(" - not an IPv6 address"));
        }
        let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
        Ok(Self::V6(network.to_bits() & mask, mask))
    }

    /// Whether the address is in the block. The address of nobody (0.0.0.0) is in none.
    pub(crate) fn contains(self, address: IpAddr) -> bool {
        match (self, address) {
            (Self::V4(network, mask), IpAddr::V4(address)) => {
                address != Ipv4Addr::UNSPECIFIED && address.to_bits() & mask == network
            }
            (Self::V6(network, mask), IpAddr::V6(address)) => address.to_bits() & mask == network,
            (Self::V4(..), IpAddr::V6(_)) | (Self::V6(..), IpAddr::V4(_)) => false,
        }
    }
}

/// A number of 1 to `most` decimal digits.
fn digits(text: &str, most: usize) -> Option<u32> {
    let fits = (1..=most).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    fits.then(|| text.parse().ok())?
}

fn in_range(number: u32, most: u32) -> Result<u32, String> {
    if number > most {
        return Err(format!("Value [{number}] not in range [0,{most}]"));
    }
    Ok(number)
}

/// An address as Java reads it: in brackets or not, and with the number of an interface, which
/// says nothing about a block.
fn v6(text: &str) -> Option<Ipv6Addr> {
    let inner = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
    let inner = inner.unwrap_or(text);
    let address = match inner.split_once('%') {
        Some((address, zone)) => digits(zone, 9).map(|_| address)?,
        None => inner,
    };
    address.parse().ok()
}
