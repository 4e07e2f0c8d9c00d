import Rules
import System

// The user that programs run as.
extension ProgramDecoder {
    func user(_ entry: YAMLNode.Entry) -> ProgramUser? {
        guard let text = text(entry, help: "write a user, such as 'www-data', or USER:GROUP") else { return nil }
        guard machine.isRoot else {
            return reject(
                "'run_as' needs root: only root can start programs as another user", at: mark(entry),
                help: "start Alight as root, or as that user and without 'run_as'")
        }
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        guard let name = parts.first, !name.isEmpty, parts.count == 1 || !parts[1].isEmpty else {
            return reject("'run_as' can't be \(quoted(text))", at: mark(entry), help: "write USER or USER:GROUP")
        }
        // As in chown(1): a name takes precedence, and a number applies only if no user has that name.
        let number = UInt32(name).flatMap { $0 == .max ? nil : $0 }
        let account = machine.accounts.named(name) ?? number.flatMap { machine.accounts.numbered($0) }
        guard let uid = account?.uid ?? number else { return unknown("user", name, at: mark(entry)) }
        guard let gid = group(of: account, parts.count == 2 ? parts[1] : nil, number: name, entry) else { return nil }
        return ProgramUser(
            text: text, name: account?.name, uid: uid, gid: gid,
            groups: account.map { machine.accounts.groups($0.name, gid) } ?? [gid], home: account?.home ?? "/")
    }

    private func group(
        of account: Accounts.Account?, _ name: String?, number: String, _ entry: YAMLNode.Entry
    ) -> UInt32? {
        if let name {
            if let gid = Accounts.group(named: name) ?? UInt32(name).flatMap({ $0 == .max ? nil : $0 }) { return gid }
            return unknown("group", name, at: mark(entry))
        }
        if let account { return account.gid }
        return reject(
            "no user has the ID \(number), so its group is unknown", at: mark(entry), help: "write '\(number):GROUP'")
    }
}
