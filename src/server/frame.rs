//! Frames and headers: four bytes of length, then a header, then a body.
//!
//! Everything here works on bytes that are already in memory; `connection` owns the socket. A
//! frame's memory grows with the bytes that arrive, never with the length that was announced.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::shape::{Cursor, ShapeFault};

/// Bytes of the length in front of every frame.
pub(crate) const LENGTH_BYTES: usize = 4;
/// A request header without a client id: api key, version, correlation id.
pub(crate) const HEADER_BYTES_MIN: usize = 8;

/// Why the bytes of a connection are not a frame that we serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameFault {
    /// The length is negative.
    NegativeLength(i32),
    /// The length is above `socket.request.max.bytes`.
    TooLarge(usize),
    /// The length leaves no room for a header.
    TooShort(usize),
    /// The first bytes are a TLS ClientHello: the client speaks TLS to a plaintext listener.
    TlsHello,
    /// The first bytes are an HTTP request line.
    Http,
}

impl std::fmt::Display for FrameFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NegativeLength(length) => write!(f, "a frame length of {length}"),
            Self::TooLarge(length) => {
                write!(
                    f,
                    "a frame of {length} bytes, above socket.request.max.bytes"
                )
            }
            Self::TooShort(length) => {
                write!(f, "a frame of {length} bytes, too short for a header")
            }
            Self::TlsHello => f.write_str("a TLS hello on a plaintext listener"),
            Self::Http => f.write_str("an HTTP request on a Kafka listener"),
        }
    }
}

/// The length of the frame at the start of `bytes`, or `None` while the length is incomplete.
/// The result is at least [`HEADER_BYTES_MIN`] and at most `frame_bytes_max`.
///
/// # Errors
/// The length can never be one of a request.
pub(crate) fn frame_length(
    bytes: &[u8],
    frame_bytes_max: usize,
) -> Result<Option<usize>, FrameFault> {
    let Some(prefix) = bytes.first_chunk::<LENGTH_BYTES>() else {
        return Ok(None);
    };
    let length = i32::from_be_bytes(*prefix);
    let Ok(size) = usize::try_from(length) else {
        return Err(FrameFault::NegativeLength(length));
    };
    // As lengths these are frames of 369 MB and of over 1 GB.
    match prefix {
        [0x16, 0x03, 0..=4, _] => return Err(FrameFault::TlsHello),
        b"GET " | b"POST" | b"HEAD" | b"PUT " | b"OPTI" | b"CONN" => return Err(FrameFault::Http),
        _ if size > frame_bytes_max => return Err(FrameFault::TooLarge(size)),
        _ => {}
    }
    if size < HEADER_BYTES_MIN {
        return Err(FrameFault::TooShort(size));
    }
    Ok(Some(size))
}

/// The part of a request header that does not depend on the header's version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeaderStart {
    /// Which API.
    pub(crate) api_key: i16,
    /// Which version of it.
    pub(crate) version: i16,
    /// Comes back in the response.
    pub(crate) correlation_id: i32,
}

impl HeaderStart {
    /// Reads the first eight bytes of a frame (header v0 is no more than these), and takes them.
    ///
    /// # Errors
    /// Fewer than eight bytes.
    pub(crate) fn parse(frame: &mut Bytes) -> Result<Self, ShapeFault> {
        if frame.len() < HEADER_BYTES_MIN {
            return Err(ShapeFault::Truncated);
        }
        Ok(Self {
            api_key: frame.get_i16(),
            version: frame.get_i16(),
            correlation_id: frame.get_i32(),
        })
    }
}

/// Reads and takes what follows [`HeaderStart`] in a header v1 (`flexible` false: the client id) or
/// v2 (`flexible`: tagged fields behind it, all of them unknown to this release and skipped).
/// The client id is a string with a two-byte length in both. What it is: null or UTF-8.
///
/// # Errors
/// The header does not fit the frame, or the client id is not UTF-8.
pub(crate) fn parse_header_rest(
    frame: &mut Bytes,
    flexible: bool,
) -> Result<Option<String>, ShapeFault> {
    let mut cursor = Cursor::new(frame);
    let client_id = match cursor.int16()? {
        -1 => None,
        length => {
            let length = usize::try_from(length).map_err(|_| ShapeFault::BadLength)?;
            let text = std::str::from_utf8(cursor.take(length)?);
            Some(text.map_err(|_| ShapeFault::NotUtf8)?.to_owned())
        }
    };
    if flexible {
        cursor.skip_tagged_fields()?;
    }
    let used = cursor.position();
    frame.advance(used);
    Ok(client_id)
}

/// Starts a response frame: room for its length, the correlation id and, in a header v1
/// (`flexible`), no tagged fields. ApiVersions is answered with header v0 at every version.
pub(crate) fn begin_response(correlation_id: i32, flexible: bool) -> BytesMut {
    let mut frame = BytesMut::with_capacity(128);
    frame.put_i32(0);
    frame.put_i32(correlation_id);
    if flexible {
        frame.put_u8(0);
    }
    frame
}

/// Writes the length over the room that [`begin_response`] left.
pub(crate) fn finish_response(mut frame: BytesMut) -> Bytes {
    let length = i32::try_from(frame.len() - LENGTH_BYTES)
        .expect("a response is built from bounded parts and stays below 2 GiB");
    frame[..LENGTH_BYTES].copy_from_slice(&length.to_be_bytes());
    frame.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 104_857_600;

    #[test]
    fn a_length_is_waited_for_then_read() {
        assert_eq!(frame_length(&[], MAX), Ok(None));
        assert_eq!(frame_length(&[0, 0, 0], MAX), Ok(None));
        assert_eq!(frame_length(&[0, 0, 0, 8, 1], MAX), Ok(Some(8)));
        assert_eq!(
            frame_length(&(MAX as i32).to_be_bytes(), MAX),
            Ok(Some(MAX))
        );
    }

    #[test]
    fn lengths_that_are_no_request_are_named() {
        let fault = |bytes: [u8; 4]| frame_length(&bytes, MAX).unwrap_err();
        assert_eq!(fault([0xff; 4]), FrameFault::NegativeLength(-1));
        assert_eq!(fault([0, 0, 0, 7]), FrameFault::TooShort(7));
        assert_eq!(
            fault(i32::MAX.to_be_bytes()),
            FrameFault::TooLarge(0x7fff_ffff)
        );
        assert_eq!(
            fault((MAX as i32 + 1).to_be_bytes()),
            FrameFault::TooLarge(MAX + 1)
        );
        assert_eq!(fault([0x16, 3, 1, 2]), FrameFault::TlsHello);
        assert_eq!(fault(*b"GET "), FrameFault::Http);
    }

    #[test]
    fn a_tls_hello_is_recognised_even_when_the_limit_would_allow_its_length() {
        let all = i32::MAX as usize;
        assert_eq!(
            frame_length(&[0x16, 3, 1, 2], all),
            Err(FrameFault::TlsHello)
        );
    }

    #[test]
    fn header_v1_ends_after_the_client_id() {
        let mut frame = Bytes::from_static(&[0, 19, 0, 4, 0, 0, 0, 9, 0, 2, b'a', b'b', 7]);
        let start = HeaderStart::parse(&mut frame).unwrap();
        assert_eq!(
            start,
            HeaderStart {
                api_key: 19,
                version: 4,
                correlation_id: 9
            }
        );
        let client_id = parse_header_rest(&mut frame, false).unwrap();
        assert_eq!(client_id.as_deref(), Some("ab"));
        assert_eq!(&frame[..], [7]);
    }

    #[test]
    fn header_v2_skips_tagged_fields_and_knows_a_null_client_id() {
        let mut frame = Bytes::from_static(&[0xff, 0xff, 2, 0, 1, 42, 5, 2, 8, 9, 7]);
        assert_eq!(parse_header_rest(&mut frame, true), Ok(None));
        assert_eq!(&frame[..], [7]);
    }

    #[test]
    fn headers_that_do_not_fit_are_refused() {
        let rest = |bytes: &'static [u8]| parse_header_rest(&mut Bytes::from_static(bytes), true);
        assert_eq!(rest(&[0, 9, 1]), Err(ShapeFault::Truncated));
        assert_eq!(rest(&[0xff, 0xfe, 0]), Err(ShapeFault::BadLength));
        assert_eq!(rest(&[0, 1, 0xff, 0]), Err(ShapeFault::NotUtf8));
        assert_eq!(rest(&[0, 0, 1, 0, 200]), Err(ShapeFault::Truncated));
        assert_eq!(rest(&[0, 0]), Err(ShapeFault::Truncated));
    }

    #[test]
    fn a_response_frame_carries_its_length() {
        let mut frame = begin_response(5, true);
        frame.put_u8(1);
        assert_eq!(&finish_response(frame)[..], [0, 0, 0, 6, 0, 0, 0, 5, 0, 1]);
        assert_eq!(
            &finish_response(begin_response(5, false))[..],
            [0, 0, 0, 4, 0, 0, 0, 5]
        );
    }
}
