//! seccomp: which system calls a program is refused.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};

/// Sockets, and a way to make them without that call. No network, no service of this machine: the
/// container runtime's socket would be a way to every right.
const SOCKETS: &[c_long] = &[
    libc::SYS_socket,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// System calls that change modes, owners and attributes of files, which Landlock does not restrict: a program
/// could lock its user out of the user's own files, or give others access. Calls that set times of files are
/// allowed, as many programs use them.
const ATTRIBUTES: &[c_long] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchmodat2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    SYS_SETXATTRAT,
    SYS_REMOVEXATTRAT,
    SYS_FILE_SETATTR,
];

/// Other processes' memory, descriptors, keys and shared memory.
const PROCESSES: &[c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// System calls for administrators, refused for the sake of programs that run as root, and ways
/// into parts of the kernel in which weaknesses were often found.
const ADMINISTRATION: &[c_long] = &[
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_reboot,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
];

/// Calls that only this processor has.
#[cfg(target_arch = "x86_64")]
const OF_THIS_PROCESSOR: &[c_long] = &[
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_iopl,
    libc::SYS_ioperm,
];
#[cfg(not(target_arch = "x86_64"))]
const OF_THIS_PROCESSOR: &[c_long] = &[];

/// Numbers that the C library's headers do not have yet; they are the same on every processor.
const SYS_SETXATTRAT: c_long = 463;
const SYS_REMOVEXATTRAT: c_long = 466;
const SYS_FILE_SETATTR: c_long = 469;

/// Requests of ioctl(2) that are refused: typing into the terminal (`TIOCSTI`, `TIOCLINUX`), and
/// changing a file's flags and attributes (`FS_IOC_SETFLAGS`, `FS_IOC_FSSETXATTR`), for which a file
/// need not be open for writing.
const REQUESTS: [u64; 4] = [0x5412, 0x541c, 0x4008_6602, 0x401c_5820];

/// Flags with which clone(2) makes namespaces: `CLONE_NEWNS`, `NEWCGROUP`, `NEWUTS`, `NEWIPC`,
/// `NEWUSER`, `NEWPID` and `NEWNET`.
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// x86-64 kernels may take the calls of the x32 ABI, which have the same architecture and this bit.
#[cfg(target_arch = "x86_64")]
const X32: i64 = 0x4000_0000;

/// Number of ioctl(2) in the x32 ABI, which differs from the usual one.
#[cfg(target_arch = "x86_64")]
const X32_IOCTL: i64 = X32 | 514;

/// The two filters: calls refused by the first fail with `EPERM`, by the second with `ENOSYS`.
struct Filters {
    refused: BpfProgram,
    missing: BpfProgram,
}

/// Refuses the calls to the calling thread.
pub(super) fn enter() -> Result<(), String> {
    static FILTERS: OnceLock<Result<Filters, String>> = OnceLock::new();
    let filters = FILTERS.get_or_init(Filters::new).as_ref();
    let filters = filters.map_err(String::clone)?;
    for filter in [&filters.refused, &filters.missing] {
        apply_filter(filter).map_err(|error| format!("seccomp failed: {error}"))?;
    }
    Ok(())
}

// === impl Filters ===

impl Filters {
    fn new() -> Result<Self, String> {
        Self::compile().map_err(|error| format!("seccomp has no filters here: {error}"))
    }

    fn compile() -> Result<Self, seccompiler::BackendError> {
        let arch = TargetArch::try_from(std::env::consts::ARCH)?;
        let filter = |rules, errno: i32| {
            let action = SeccompAction::Errno(errno.unsigned_abs());
            SeccompFilter::new(rules, SeccompAction::Allow, action, arch)?.try_into()
        };
        Ok(Self {
            refused: filter(refused()?, libc::EPERM)?,
            // The flags of clone3(2) are in memory, which a filter cannot read: it could make namespaces,
            // and processes in other control groups. Without it the C library uses clone(2).
            missing: filter(
                with_x32([(libc::SYS_clone3, Vec::new())].into()),
                libc::ENOSYS,
            )?,
        })
    }
}

/// The refused calls, each with the arguments that make it so; without any, always.
fn refused() -> Result<BTreeMap<i64, Vec<SeccompRule>>, seccompiler::BackendError> {
    let always = [
        SOCKETS,
        ATTRIBUTES,
        PROCESSES,
        ADMINISTRATION,
        OF_THIS_PROCESSOR,
    ];
    let always = always.into_iter().flatten();
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        always.map(|&call| (call, Vec::new())).collect();
    let local = libc::AF_UNIX.unsigned_abs();
    // A pair that only the program has is fine; other families have pairs of other kinds.
    rules.insert(
        libc::SYS_socketpair,
        vec![rule(0, SeccompCmpOp::Ne, local.into())?],
    );
    // The limits of another process; 0 is the program itself.
    rules.insert(libc::SYS_prlimit64, vec![rule(0, SeccompCmpOp::Ne, 0)?]);
    let namespaces = NAMESPACES.map(|flag| {
        let flag = u64::from(flag.unsigned_abs());
        rule(0, SeccompCmpOp::MaskedEq(flag), flag)
    });
    let namespaces = namespaces.into_iter().collect::<Result<_, _>>()?;
    rules.insert(libc::SYS_clone, namespaces);
    let requests = REQUESTS.map(|request| rule(1, SeccompCmpOp::Eq, request));
    let requests = requests.into_iter().collect::<Result<_, _>>()?;
    rules.insert(libc::SYS_ioctl, requests);
    Ok(with_x32(rules))
}

/// A rule for calls by a comparison of an argument's low 32 bits, the only ones that the kernel uses.
fn rule(
    argument: u8,
    op: SeccompCmpOp,
    value: u64,
) -> Result<SeccompRule, seccompiler::BackendError> {
    let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, op, value)?;
    SeccompRule::new(vec![condition])
}

#[cfg(target_arch = "x86_64")]
fn with_x32(mut rules: BTreeMap<i64, Vec<SeccompRule>>) -> BTreeMap<i64, Vec<SeccompRule>> {
    let ioctl = rules.get(&libc::SYS_ioctl).cloned();
    let x32 = rules.clone().into_iter();
    rules.extend(x32.map(|(call, rules)| (call | X32, rules)));
    rules.extend(ioctl.map(|rules| (X32_IOCTL, rules)));
    rules
}

#[cfg(not(target_arch = "x86_64"))]
fn with_x32(rules: BTreeMap<i64, Vec<SeccompRule>>) -> BTreeMap<i64, Vec<SeccompRule>> {
    rules
}
