//! Listeners: bytes of sockets to requests of the core, replies to bytes.

mod frame;
mod shape;
mod shapes;
mod wire;
