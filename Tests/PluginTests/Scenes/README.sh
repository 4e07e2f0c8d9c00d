#: start
# Alight finds the plugins beside the rules file.
ln -s "$CHECKOUT/plugins" plugins

#: instead $ alight run rules/
# The actions finish in any order, and the thumbnail of the camera image is created before or after its move.
"$CHECKOUT/packaging/demo" "$ALIGHT" >demo.out
sed -i -E 's|( thumbnails: created ~/Pictures/)inbox/IMG|\12026/11/IMG|; s|(thumbs/)(IMG)|\12026/11/\2|' demo.out
grep -v '^[0-9:]* [a-z-]*: ' demo.out | sed -n '/^\$ alight run/,/^\$ cp light/p'
grep '^[0-9:]* [a-z-]*: ' demo.out | sort -k2
sed -n '/^thumbnail: /,$p' demo.out

#: before alight check rules.yaml
cp "$RULES" rules.yaml
mkdir -p Documents

#: after alight check rules.yaml
echo 'the lighthouse' >Documents/note.md
await_output 'search: .*succeeded'
finish
