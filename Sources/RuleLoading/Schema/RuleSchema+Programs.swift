import PluginProtocol

extension RuleSchema {
    /// What programs may use and reach, and as whom they run.
    static let aboutPrograms = [
        SchemaKey(
            "umask", "The mode bits that files of programs don't have: octal digits in quotes.",
            ["type": "string", "pattern": "^0?[0-7]{3}$"], standard: "027", examples: ["022"]),
        SchemaKey(
            "nice", "How programs stand back for others, from -20 to 19; less than 0 needs root.",
            SchemaForm.integer(-20...19), examples: [10]),
        SchemaKey(
            "ionice", "How programs stand back at disks.",
            ["type": "string", "pattern": "^(idle|best-effort(:[0-7])?|realtime:[0-7])$"],
            examples: ["idle", "best-effort:7"]),
        SchemaKey(
            "limits", "The most that programs may use.",
            SchemaForm.orFalse(
                SchemaForm.object(
                    [
                        "cpu": SchemaForm.duration(), "memory": SchemaForm.size(atLeast: 4 << 20),
                        "files": SchemaForm.integer(16...1_048_576), "processes": SchemaForm.integer(1...4_194_304),
                        "file_size": SchemaForm.size(atLeast: 1),
                    ], isNonEmpty: true)),
            examples: [["cpu": "30s", "memory": "512 MiB", "files": 256, "file_size": "1 GiB"]]),
        SchemaKey(
            "run_as", "The user that programs run as, USER or USER:GROUP; needs root.",
            SchemaForm.orFalse(SchemaForm.text(minimum: 1, pattern: "^[^:]+(:.+)?$")),
            examples: ["www-data", "media:users"]),
        SchemaKey(
            "sandbox", "What programs can reach; with 'read' or 'write' no other files.",
            SchemaForm.orFalse(
                SchemaForm.object(
                    [
                        "read": SchemaForm.list(of: confinedPath), "write": SchemaForm.list(of: confinedPath),
                        "network": yesOrNo, "required": yesOrNo,
                    ], isNonEmpty: true)), examples: [["write": ["/srv/out"], "network": "no"]]),
    ]

    private static let confinedPath = SchemaForm.text(minimum: 1, pattern: SchemaForm.templatePattern)
    private static let yesOrNo: JSONValue = ["enum": [true, false, "yes", "no"]]
}
