//! The commands of the Linux driver, in its order.

use super::*;

/// The commands that the Linux driver sends to bring a controller and its namespaces up, in its order.
#[test]
fn a_controller_comes_up_as_the_linux_driver_asks() {
    let mut subsystem = Subsystem::new(Scripted::new());
    let mut link = Link::new(1, Digests::default(), &mut subsystem);
    let any = connect_data(DYNAMIC_CONTROLLER, SUBSYSTEM);
    assert_eq!(
        connect(&mut link, &mut subsystem, 0, &any),
        (Status::SUCCESS, 1)
    );
    let identify = |cns: u32, nsid, set: u32| {
        Command::new(admin::IDENTIFY, nsid).with_dwords(&[cns, set << 24])
    };
    let feature =
        |id: u32, value: u32| Command::new(admin::SET_FEATURES, 0).with_dwords(&[id, value]);
    let page = CommandData::ToHost(4096);
    for (command, data) in [
        (PropertyFields::get(property::CAP, true), CommandData::None),
        (PropertyFields::get(property::VS, false), CommandData::None),
        (
            PropertyFields::set(property::CC, 0x0046_0060),
            CommandData::None,
        ),
        (
            PropertyFields::set(property::CC, 0x0046_0061),
            CommandData::None,
        ),
        (
            PropertyFields::get(property::CSTS, false),
            CommandData::None,
        ),
        (identify(1, 0, 0), page.clone()),
        (identify(6, 0, 0), page.clone()),
        (feature(0x0b, 0), CommandData::None),
        (Command::new(admin::KEEP_ALIVE, 0), CommandData::None),
        (feature(0x07, 0x0003_0003), CommandData::None),
        (identify(2, 0, 0), page.clone()),
        (identify(3, 1, 0), page.clone()),
        (identify(0, 1, 0), page.clone()),
        (identify(5, 1, 0), page.clone()),
        (identify(3, 2, 0), page.clone()),
        (identify(8, 2, 0), page.clone()),
        (identify(3, 3, 0), page.clone()),
        (identify(8, 3, 0), page),
    ] {
        let status = link.status(&mut subsystem, command, data);
        assert_eq!(status, Status::SUCCESS, "{command:?}");
    }
    let shut_down = PropertyFields::set(property::CC, 0x0046_4061);
    let status = PropertyFields::get(property::CSTS, false);
    assert_eq!(
        link.status(&mut subsystem, shut_down, CommandData::None),
        Status::SUCCESS
    );
    let status = link
        .call(&mut subsystem, status, CommandData::None)
        .unwrap();
    assert_eq!(status.completion.result[0], 1 | 2 << 2);
}
