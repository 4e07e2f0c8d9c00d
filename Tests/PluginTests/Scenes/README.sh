#: instead $ alight run rules/
# The two actions end in either order.
"$CHECKOUT/packaging/demo" "$ALIGHT" >demo.out
sed -i -E 's|/tmp/tmp\.[A-Za-z0-9]+|~|g' demo.out
reindex=$(grep -n ' reindex: ' demo.out | cut -d: -f1)
thumbnails=$(grep -n ' thumbnails: ' demo.out | cut -d: -f1)
[ "$reindex" -lt "$thumbnails" ] || sed -i "${thumbnails}{h;d};${reindex}G" demo.out
cat demo.out
