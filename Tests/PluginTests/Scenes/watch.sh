#: before $ alight watch ~/Downloads
mkdir -p Downloads/2026/{1,2,3,4,5,6,7,8,9,10}
echo text >Downloads/notes.txt

#: after $ alight watch ~/Downloads
echo letter >Downloads/letter.pdf
await_output 'created .*letter'
mv Downloads/letter.pdf Downloads/2026/
await_output 'moved '
echo more >>Downloads/notes.txt
await_output 'notes.txt'
finish

#: before # One line for each complete image.
mkdir in

#: after # One line for each complete image.
echo a >in/a.jpg
await_output 'in/a.jpg$'
finish
