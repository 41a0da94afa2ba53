//! kraftd beside real Kafka processes.
