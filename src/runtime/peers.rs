//! The connections to other nodes, as the configuration wants them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use tokio::runtime::Handle;

use super::core::Message;
use super::parts;
use crate::config::Config;
use crate::server::{PeerSettings, Peers};

/// No connection yet; what becomes of those that the core asks for goes to `core`. Must be called
/// inside a tokio runtime.
pub(super) fn connect(
    config: &Config,
    ports: &HashMap<String, u16>,
    core: Sender<Message>,
) -> Arc<Peers> {
    let own = parts::endpoints(config, ports).into_iter();
    let settings = PeerSettings {
        node_id: config.node_id,
        own: own
            .map(|it| (it.host.unwrap_or_default(), it.port))
            .collect(),
        request_timeout: Duration::from_millis(u64::from(config.quorum.request_timeout_ms)),
        idle_max: config.sockets.idle_ms_max.map(Duration::from_millis),
    };
    let tell = move |event| {
        // The core may have ended; nobody waits for other nodes then.
        let _ = core.send(Message::Event(event));
    };
    Arc::new(Peers::new(settings, Handle::current(), tell))
}
