# Bash completion for fgw: verbs and flags as the program itself lists them.
_fgw() {
    local word=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} words
    if [ "$COMP_CWORD" = 1 ] || { [ "$verb" = help ] && [ "$COMP_CWORD" = 2 ]; }; then
        words="help --version $(fgw help 2>/dev/null | sed -n 's/^  \([a-z-]*\) .*/\1/p')"
    elif [[ $word == --* ]]; then
        words=$(fgw help "$verb" 2>/dev/null | sed -n 's/^  \(--[a-z0-9-]*\).*/\1/p')
    else
        COMPREPLY=($(compgen -f -- "$word"))
        return
    fi
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -F _fgw fgw
