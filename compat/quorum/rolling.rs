//! Controllers of one kind are replaced by those of the other on their own directories, one by one
//! and back, while clients work.

use super::{Cluster, JAVA};
use crate::harness::{Kind, Voters};

#[test]
fn java_controllers_of_a_static_quorum_are_replaced_one_by_one_and_back() {
    replace(Voters::Static);
}

#[test]
fn java_controllers_of_a_dynamic_quorum_are_replaced_one_by_one_and_back() {
    replace(Voters::Dynamic);
}

#[track_caller]
fn replace(voters: Voters) {
    let mut cluster = Cluster::start(voters, &[JAVA; 3], &[], "4.4.0");
    for kind in [Kind::under_test(), JAVA] {
        for id in cluster.quorum.ids() {
            let quorum = &mut cluster.quorum;
            quorum.stop(id);
            quorum.spawn(id, kind);
            quorum.until_caught_up();
            cluster.until_more_work(2);
        }
    }
    cluster.judge();
}
