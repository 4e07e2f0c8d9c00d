import CAlightLinux

/// What the running kernel has to confine programs with.
package enum SandboxSupport {
    /// The version of Landlock's interface; a negative errno when there is none.
    package static var landlock: Int32 { cal_landlock_version() }

    /// Whether sockets can be refused.
    package static var canShutOffNetwork: Bool { cal_can_filter_calls() != 0 }
}
