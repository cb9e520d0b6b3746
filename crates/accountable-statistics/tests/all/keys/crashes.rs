//! Crashes before and after each commit, and messages that are late or out of order.

use crate::keys::net::Net;

#[test]
fn crashes_and_late_messages_only_delay_the_key() {
    let (mut crashes, mut attempts) = (0, 0);
    for seed in 0..16 {
        let (n, t) = if seed % 4 == 0 { (7, 3) } else { (4, 2) };
        let mut net = Net::new(n, t, seed);
        (net.late, net.crashing) = (seed * 16, 30);
        if seed % 3 == 0 {
            net.member(u16::from(seed) % n).away = true;
        }
        net.made(8_000);
        crashes += net.crashes;
        attempts += net.members.iter().filter_map(|member| member.maker.attempt()).max().unwrap();
    }
    assert!(crashes > 90 && attempts > 2, "{crashes} {attempts}");
}
