import Glibc
import Watching

extension Reporter {
    /// Reports once that the writers of files are not known.
    func sayAuthorsUntold(_ error: WatchError) {
        let effect = "'by' is omitted, and 'where: { by: … }' matches no files"
        switch error {
        case .refused(_, errno: EPERM):
            say(
                .warning, "the kernel reports who writes only to processes with CAP_SYS_ADMIN; \(effect)",
                help: "run Alight as root, or remove 'by'")
        case .refused(_, let errno):
            say(
                .warning, "cannot find out who writes (fanotify: \(String(cString: strerror(errno)))); \(effect)",
                help: errno == EMFILE
                    ? "raise fs.fanotify.max_user_groups" : "run Linux 5.9 or later with fanotify, or remove 'by'")
        case .notFolder: say(.warning, Display.text(error.description), help: error.help)
        }
    }
}
