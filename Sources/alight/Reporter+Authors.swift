import FileWatching
import Glibc

extension Reporter {
    /// Says once that nobody tells who writes.
    func sayAuthorsUntold(_ error: WatchError) {
        let effect = "'by' is left out, and 'where: { by: … }' leaves all files"
        switch error {
        case .refused(_, errno: EPERM):
            say(
                .warning,
                "who writes can't be told, since the kernel tells only programs with CAP_SYS_ADMIN; \(effect)",
                help: "run Alight as root, or do without 'by'")
        case .refused(_, let errno):
            say(
                .warning, "who writes can't be told (fanotify: \(String(cString: strerror(errno)))); \(effect)",
                help: errno == EMFILE
                    ? "raise fs.fanotify.max_user_groups" : "run Linux 5.9 or later with fanotify, or do without 'by'")
        case .notFolder: say(.warning, Display.text(error.description), help: error.help)
        }
    }
}
