import CAlightLinux

/// The support of the running kernel for the confinement of programs.
package enum SandboxSupport {
    /// The ABI version of Landlock; a negative errno when there is none.
    package static var landlock: Int32 { cal_landlock_version() }

    /// Whether the sandbox can refuse sockets.
    package static var canShutOffNetwork: Bool { cal_can_filter_calls() != 0 }
}
