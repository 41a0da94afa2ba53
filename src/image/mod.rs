//! The image room.
