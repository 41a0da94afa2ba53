//! Listeners: bytes of sockets to requests of the core, replies to bytes.

mod budget;
mod complaints;
mod connection;
mod frame;
mod limits;
mod listener;
mod shape;
mod shapes;
mod wire;
