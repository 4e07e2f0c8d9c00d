import Rules
import Testing

@testable import Configuration

struct CodeArgumentsTests {
    /// Commands, in which `%` is a placeholder for text of a file, and the indices of the arguments that are code.
    private static let commands: [(command: String, code: Set<Int>)] = [
        ("sh -c %", [2]), ("/usr/bin/bash -lc % x %", [2]), ("dash -e -c -- % %", [4]), ("zsh -co pipefail %", [3]),
        ("bash --rcfile /x -c %", [4]), ("sh +e -c %", [3]), ("sh % -c %", []), ("sh -e % %", []),
        ("fish --command=%", [1]), ("fish -c%", [1]), ("ksh -c - %", [2]),
        ("env A=b sh -c %", [4]), ("env -i -u X sh -c %", [6]), ("env -S %", [2]), ("env --split-string=%", [1]),
        ("nice -n 5 sh -c %", [5]), ("ionice -c3 nice -10 sh -c %", [6]), ("sudo -u sh A=% sh -c %", [6]),
        ("sudo -n -- python3 -c %", [5]), ("timeout -k 5 10s sh -c %", [6]), ("nohup setsid -f sh -c %", [5]),
        ("xargs -0 -n 1 sh -c %", [6]), ("find % -name x -exec sh -c % {} ;", [7]), ("stdbuf -oL awk %", [3]),
        ("python3 -c % %", [2]), ("python3.11 -Ic %", [2]), ("python3 -W ignore -c %", [4]), ("python3 % -c %", []),
        ("python3 -m tool -c %", []), ("python3 -c%", [1]),
        ("perl -e %", [2]), ("perl -I lib -lne % %", [4]), ("perl -pi.bak -e % %", [3]), ("perl -MFoo=% x", [1]),
        ("perl % -e %", []), ("ruby -ne % %", [2]), ("ruby -r json -e %", [4]),
        ("node -e % %", [2]), ("node -pe %", [2]), ("node --eval=%", [1]), ("node % -e %", []), ("php -r % -- %", [2]),
        ("lua5.4 -e %", [2]), ("Rscript -e %", [2]),
        ("awk % %", [1]), ("gawk -F : -v x=% % %", [5]), ("mawk -f x.awk % %", []), ("gawk --source=% %", [1]),
        ("sed % %", [1]), ("sed -n -e % %", [3]), ("sed -ne % -e% %", [2, 3]), ("sed -f x.sed %", []),
        ("sed -i.bak s/a/b/ %", [2]), ("jq --arg x % % %", [4]), ("jq -r . %", [2]),
        ("sqlite3 % %", [2]), ("psql -d x -c %", [4]),
        ("ssh -i key host % %", [1, 2, 3, 4, 5]), ("sshpass -p x ssh host %", [4, 5]), ("parallel % ::: %", [1]),
        ("su web -c %", [3]), ("runuser -u web -- sh -c %", [6]), ("flock /l -c %", [3]),
        ("flock -w 5 /l sh -c %", [6]),
        ("script -qc % /dev/null", [2]), ("tar -cf x --to-command=% %", [3]), ("make FILE=%", [1]),
        ("busybox sh -c %", [3]), ("docker run x sh -c %", [5]), ("./wrapper perl -e %", [3]),
        ("grep -c -e % %", []), ("logger -t ssh %", []), ("cp -e % %", []), ("ffmpeg -i % -c copy %", []),
        ("git -c x=% log", []), ("chmod 644 %", []), ("sort", []),
    ]

    @Test(arguments: commands)
    func `the arguments that a program executes as code are found`(command: String, code: Set<Int>) {
        let words = command.split(separator: " ").map { word in
            Template(PlaceholderScan(String(word).replacing("%", with: "${name}"))) { _ in .placeholder(.name) }
        }
        #expect(Set(CodeArguments(of: words).found.keys).subtracting([words.count]) == code)
    }
}
