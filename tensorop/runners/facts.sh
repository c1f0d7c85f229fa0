# Prints a machine's properties in any POSIX shell. Each part begins with a line `@name`; absent properties are skipped.
exec 2>/dev/null
echo @uname; uname -m; uname -r
echo @libc; getconf GNU_LIBC_VERSION || ldd --version | head -n 1
echo @online; getconf _NPROCESSORS_ONLN
echo @page; getconf PAGESIZE
echo @governor; cat /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor
echo @load; cat /proc/loadavg
echo @sysfs
for i in 0 1 2 3 4; do
    d=/sys/devices/system/cpu/cpu0/cache/index$i
    for f in level type size ways_of_associativity coherency_line_size number_of_sets shared_cpu_list; do
        v=$(cat $d/$f) && echo "index$i $f $v"
    done
done
echo @getconf; getconf -a | grep -E 'LEVEL[123]_D?CACHE_(SIZE|ASSOC|LINESIZE)'
echo @tree
cpu=$(ls -d /proc/device-tree/cpus/cpu@* | head -n 1)
for f in size sets block-size; do
    v=$(od -An -tx1 "$cpu/d-cache-$f" | tr -d ' \n') && [ -n "$v" ] && echo "l1 $f $v"
done
for d in $(ls -d "$cpu"/l2-cache* /proc/device-tree/cpus/l2-cache* /proc/device-tree/*l2-cache* \
    /proc/device-tree/soc/*cache* /proc/device-tree/soc/*l2-cache* | head -n 1); do
    for f in size sets block-size; do
        v=$(od -An -tx1 "$d/cache-$f" | tr -d ' \n') && [ -n "$v" ] && echo "l2 $f $v"
    done
done
echo @cpuinfo; cat /proc/cpuinfo
echo @end
