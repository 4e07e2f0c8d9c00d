#: start
touch alight_1.0_amd64.deb

#: after mkdir -p ~/.config/alight/rules ~/inbox
echo new >inbox/new.txt
await_output 'new\.txt'
finish
